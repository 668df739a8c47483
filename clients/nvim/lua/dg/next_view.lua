--- Draws the next edit at its line, or says from the cursor's line where it is.

local config = require('dg.config')
local lent_keys = require('dg.lent_keys')
local spots = require('dg.spot')

---@class dg.NextShown
---@field lent dg.Lent

local M = {}

local namespace = vim.api.nvim_create_namespace('dg.next_edit')

--- The same edit for the eye: words that it changes in the middle are replaced whole.
---
--- What only comes or only goes stays as it is.
---@param proposal dg.Proposal
---@return { first: integer, last: integer, text: string }
function M.readable(proposal)
  local line, first, last, text = proposal.line.text, proposal.first, proposal.last, proposal.text
  local old = line:sub(first + 1, last)
  if old == '' or text == '' then
    return { first = first, last = last, text = text }
  end
  local is_ahead = spots.word_end(old, 0) > 0 or spots.word_end(text, 0) > 0
  local is_behind = spots.word_start(old, #old) < #old or spots.word_start(text, #text) < #text
  local from = is_ahead and spots.word_start(line, first) or first
  local to = is_behind and spots.word_end(line, last) or last
  return {
    first = from,
    last = to,
    text = line:sub(from + 1, first) .. text .. line:sub(last + 1, to),
  }
end

---@param name string
---@return string|false|nil
local function key(name)
  local keymaps = config.options.keymaps
  return keymaps and keymaps[name]
end

---@param buf integer
---@param proposal dg.Proposal
---@param row integer
local function draw(buf, proposal, row)
  local seen = M.readable(proposal)
  if seen.last > seen.first then
    vim.api.nvim_buf_set_extmark(buf, namespace, row, seen.first, {
      end_col = seen.last,
      hl_group = 'DgNextOld',
    })
  end
  if seen.text ~= '' then
    vim.api.nvim_buf_set_extmark(buf, namespace, row, seen.last, {
      virt_text = { { seen.text, 'DgNextNew' } },
      virt_text_pos = 'inline',
      right_gravity = false,
    })
  end
  -- A sign would shift the whole text where the column for signs comes and goes.
  vim.api.nvim_buf_set_extmark(buf, namespace, row, 0, { number_hl_group = 'DgNextLine' })
end

---@param buf integer
---@param row integer The line that it hangs on.
---@param message string
local function hint(buf, row, message)
  vim.api.nvim_buf_set_extmark(buf, namespace, row, 0, {
    virt_text = { { ' ' .. message, 'DgEditHint' } },
    virt_text_pos = 'eol',
  })
end

--- Draw it, and have its keys.
---@param buf integer
---@param shown dg.NextShown
---@param proposal dg.Proposal
---@param go fun()
---@param dismiss fun()
function M.show(buf, shown, proposal, go, dismiss)
  vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  local row = spots.range(proposal.line)
  if not row then
    return
  end
  draw(buf, proposal, row)
  local where = key('next_edit') or ':DgNextEdit'
  if vim.api.nvim_get_current_buf() == buf then
    local above, below = row < vim.fn.line('w0') - 1, row > vim.fn.line('w$') - 1
    if above or below then
      local cursor = vim.api.nvim_win_get_cursor(0)[1] - 1
      local arrow = above and '↑' or '↓'
      hint(buf, cursor, ('%s dg: next edit in line %d, %s'):format(arrow, row + 1, where))
    else
      hint(buf, row, ('dg: %s'):format(where))
    end
  end
  for name, action in pairs({ next_edit = go, next_edit_dismiss = dismiss }) do
    local lhs = key(name)
    if lhs then
      lent_keys.take(buf, shown.lent, lhs, action, name)
    end
  end
end

---@param buf integer
---@param shown dg.NextShown
function M.hide(buf, shown)
  if vim.api.nvim_buf_is_valid(buf) then
    vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
    lent_keys.give_back(buf, shown.lent)
  end
end

return M

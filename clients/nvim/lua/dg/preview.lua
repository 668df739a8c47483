--- An edit as a diff in the buffer: old lines coloured, new lines as virtual lines; nothing written.

local text = require('dg.text')

---@class dg.Hunk
---@field first integer Old lines from here, from 0 in the region.
---@field count integer How many old lines go.
---@field lines string[] What comes in their place.

local M = {}

local namespace = vim.api.nvim_create_namespace('dg.edit')

---@param old string[]
---@param new string[]
---@return dg.Hunk[]
function M.hunks(old, new)
  local diff = vim.text and vim.text.diff or vim.diff
  local a, b = table.concat(old, '\n') .. '\n', table.concat(new, '\n') .. '\n'
  local found = {} ---@type dg.Hunk[]
  local indices = diff(a, b, { result_type = 'indices', algorithm = 'histogram' })
  for _, at in
    ipairs(indices --[[@as integer[][] ]])
  do
    local start_a, count_a, start_b, count_b = at[1], at[2], at[3], at[4]
    found[#found + 1] = {
      -- Where nothing goes, xdiff names the line before the place.
      first = count_a == 0 and start_a or start_a - 1,
      count = count_a,
      lines = vim.list_slice(new, start_b, start_b + count_b - 1),
    }
  end
  return found
end

---@param buf integer
---@param row integer The line that the text hangs on.
---@param above boolean
---@param chunks [string, string][][]
local function virtual(buf, row, above, chunks)
  vim.api.nvim_buf_set_extmark(buf, namespace, row, 0, {
    virt_lines = chunks,
    virt_lines_above = above,
  })
  if above and row == 0 and vim.api.nvim_get_current_buf() == buf and vim.fn.line('w0') == 1 then
    -- Lines above the first are out of sight until the window makes room for them.
    vim.fn.winrestview({ topfill = #chunks })
  end
end

--- Draw hunks for the region that begins at line `first`, with a hint below the last one.
---@param buf integer
---@param first integer From 0.
---@param hunks dg.Hunk[]
---@param hint string
function M.show(buf, first, hunks, hint)
  M.hide(buf)
  local tabstop = vim.bo[buf].tabstop
  for number, hunk in ipairs(hunks) do
    for row = first + hunk.first, first + hunk.first + hunk.count - 1 do
      vim.api.nvim_buf_set_extmark(buf, namespace, row, 0, { line_hl_group = 'DgEditOld' })
    end
    local chunks = {} ---@type [string, string][][]
    for _, line in ipairs(hunk.lines) do
      chunks[#chunks + 1] = { { text.without_tabs(line, 0, tabstop), 'DgEditNew' } }
    end
    if number == #hunks then
      chunks[#chunks + 1] = { { hint, 'DgEditHint' } }
    end
    local below = first + hunk.first + hunk.count - 1
    if #chunks > 0 then
      virtual(buf, math.max(below, 0), below < 0, chunks)
    end
  end
end

--- Say something at the end of a line.
---@param buf integer
---@param row integer
---@param message string
function M.note(buf, row, message)
  M.hide(buf)
  vim.api.nvim_buf_set_extmark(buf, namespace, row, 0, {
    virt_text = { { message, 'DgEditHint' } },
    virt_text_pos = 'eol',
  })
end

---@param buf integer
function M.hide(buf)
  vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
end

return M

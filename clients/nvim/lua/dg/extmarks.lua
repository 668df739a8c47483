--- Draws a suggestion with extmarks: the first line at the cursor, the others below.

---@class dg.View
---@field attach fun(buf: integer)
---@field show fun(buf: integer, ghost: dg.Ghost)
---@field hide fun(buf: integer)
---@field is_shown fun(buf: integer): boolean
---@field accept fun(buf: integer): boolean Take all; false leaves that to the caller.

local text = require('dg.text')

local M = {} ---@class dg.Extmarks: dg.View

local namespace = vim.api.nvim_create_namespace('dg.ghost')
local MARK = 1

---@param buf integer
function M.attach(buf)
  M.hide(buf)
end

---@param buf integer
---@param ghost dg.Ghost
function M.show(buf, ghost)
  local tabstop = vim.bo[buf].tabstop
  local column = vim.fn.strdisplaywidth(ghost.line:sub(1, ghost.col))
  local lines = vim.split(ghost.items[ghost.index].text, '\n', { plain = true })
  local below = {} ---@type [string, string][][]
  for i = 2, #lines do
    below[#below + 1] = { { text.without_tabs(lines[i], 0, tabstop), 'DgGhost' } }
  end
  -- The same mark is moved, so there is no moment without one.
  vim.api.nvim_buf_set_extmark(buf, namespace, ghost.row, ghost.col, {
    id = MARK,
    virt_text = { { text.without_tabs(lines[1], column, tabstop), 'DgGhost' } },
    virt_text_pos = 'inline',
    virt_lines = below,
    hl_mode = 'combine',
    right_gravity = true,
  })
end

---@param buf integer
function M.hide(buf)
  vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
end

---@return boolean
function M.is_shown()
  return true
end

---@return boolean
function M.accept()
  return false
end

return M

--- Where the user is, and text put there.

local M = {}

---@return boolean
function M.inserting()
  return vim.startswith(vim.api.nvim_get_mode().mode, 'i')
end

--- The cursor of the current window.
---@return integer row From 0.
---@return integer col Bytes.
function M.cursor()
  local at = vim.api.nvim_win_get_cursor(0)
  return at[1] - 1, at[2]
end

--- Insert text and put the cursor behind it; undo takes it back by itself.
---@param buf integer
---@param row integer
---@param col integer
---@param piece string
function M.insert(buf, row, col, piece)
  local lines = vim.split(piece, '\n', { plain = true })
  -- Setting the option ends the undo step of what was typed.
  vim.go.undolevels = vim.go.undolevels
  vim.api.nvim_buf_set_text(buf, row, col, row, col, lines)
  local last = #lines == 1 and col + #lines[1] or #lines[#lines]
  vim.api.nvim_win_set_cursor(0, { row + #lines, last })
end

--- Put text in place of a part of a line and the cursor behind it; undo takes it back by itself.
---@param buf integer
---@param row integer
---@param first integer
---@param last integer
---@param piece string Of one line.
function M.replace(buf, row, first, last, piece)
  vim.go.undolevels = vim.go.undolevels
  vim.api.nvim_buf_set_text(buf, row, first, row, last, { piece })
  vim.api.nvim_win_set_cursor(0, { row + 1, first + #piece })
end

return M

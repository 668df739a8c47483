--- Keys of a buffer that are ours for a while; then they are again what they were before.

local M = {}

---@alias dg.Lent table<string, table> What was mapped before, by key.

local MODE = 'n'

--- Map a key of normal mode, unless it is lent already.
---@param buf integer
---@param lent dg.Lent
---@param lhs string
---@param action fun()
---@param what string
function M.take(buf, lent, lhs, action, what)
  if lent[lhs] then
    return
  end
  lent[lhs] = vim.api.nvim_buf_call(buf, function()
    return vim.fn.maparg(lhs, MODE, false, true)
  end)
  vim.keymap.set(MODE, lhs, action, { buffer = buf, desc = 'dg: ' .. what:gsub('_', ' ') })
end

--- Give all of them back.
---@param buf integer
---@param lent dg.Lent
function M.give_back(buf, lent)
  for lhs, before in pairs(lent) do
    pcall(vim.keymap.del, MODE, lhs, { buffer = buf })
    if before.buffer == 1 then
      vim.api.nvim_buf_call(buf, function()
        vim.fn.mapset(MODE, false, before)
      end)
    end
    lent[lhs] = nil
  end
end

return M

--- Suggestions and edits from dg-lsp; `require('dg').setup{}` is all that is needed.

local M = {}

--- Start: attach to ordinary buffers, map the keys.
---@param options? table See |dg-options|.
function M.setup(options)
  local config = require('dg.config')
  for _, problem in ipairs(config.set(options)) do
    vim.notify('dg: ' .. problem, vim.log.levels.WARN)
  end
  vim.api.nvim_set_hl(0, 'DgGhost', { link = 'NonText', default = true })
  vim.api.nvim_set_hl(0, 'DgEditOld', { link = 'DiffDelete', default = true })
  vim.api.nvim_set_hl(0, 'DgEditNew', { link = 'DiffAdd', default = true })
  vim.api.nvim_set_hl(0, 'DgEditHint', { link = 'Comment', default = true })
  vim.api.nvim_set_hl(0, 'DgNextOld', { link = 'DiffDelete', default = true })
  vim.api.nvim_set_hl(0, 'DgNextNew', { link = 'DiffAdd', default = true })
  vim.api.nvim_set_hl(0, 'DgNextLine', { link = 'DiffChange', default = true })
  require('dg.commands').define()
  require('dg.keymaps').set(config.options.keymaps)
  require('dg.client').enable()
end

--- Take the whole suggestion.
---@return boolean taken false when none is shown
function M.accept()
  return require('dg.ghost').accept('all')
end

--- Take the next word of the suggestion.
---@return boolean taken false when none is shown
function M.accept_word()
  return require('dg.ghost').accept('word')
end

--- Take the suggestion up to the end of its line.
---@return boolean taken false when none is shown
function M.accept_line()
  return require('dg.ghost').accept('line')
end

--- Show the next suggestion.
---@return boolean done false when none is shown
function M.next()
  return require('dg.ghost').cycle(1)
end

--- Show the previous suggestion.
---@return boolean done false when none is shown
function M.previous()
  return require('dg.ghost').cycle(-1)
end

--- Hide the suggestion.
---@return boolean done false when none is shown
function M.dismiss()
  return require('dg.ghost').dismiss(vim.api.nvim_get_current_buf())
end

--- Ask for suggestions at the cursor now.
---@return boolean done false where no server is attached
function M.trigger()
  return require('dg.ghost').trigger()
end

--- Whether a suggestion is shown in the current buffer.
---@return boolean
function M.visible()
  return require('dg.ghost').visible(vim.api.nvim_get_current_buf())
end

--- Go to the next edit; at the edit, make it.
---@return boolean done false when none is shown
function M.next_edit()
  return require('dg.next_edit').go()
end

--- Send the next edit away; the text stays as it is.
---@return boolean done false when none is shown
function M.dismiss_next_edit()
  return require('dg.next_edit').dismiss()
end

--- The server's state for a statusline; '' where it has nothing to do with the buffer.
---@return string
function M.statusline()
  local window = vim.g.statusline_winid
  local buf = window and vim.api.nvim_win_is_valid(window) and vim.api.nvim_win_get_buf(window)
  return require('dg.status').line(buf or vim.api.nvim_get_current_buf())
end

return M

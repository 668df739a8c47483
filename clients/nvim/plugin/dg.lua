-- Commands; the modules behind them are loaded when one runs. Call require('dg').setup() to start.
if vim.g.loaded_dg == 1 then
  return
end
vim.g.loaded_dg = 1

if vim.fn.has('nvim-0.11') == 0 then
  vim.notify('dg needs Neovim 0.11 or newer.', vim.log.levels.ERROR)
  return
end

require('dg.commands').define()

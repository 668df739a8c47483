--- `:checkhealth dg`

local config = require('dg.config')
local explain = require('dg.explain')

local M = {}

local TIMEOUT_MS = 20000

local function check_program()
  local program = config.options.cmd[1]
  if vim.fn.executable(program) == 0 then
    vim.health.error(('%s is not on PATH.'):format(program), {
      'Put the folder of dg-lsp (a checkout has it in .venv/bin) on your PATH.',
      "Or say where it is: require('dg').setup({ cmd = { '/path/to/dg-lsp', '--stdio' } })",
    })
    return
  end
  local ok, ran = pcall(function()
    return vim.system(explain.command_line('--version'), { text = true }):wait(TIMEOUT_MS)
  end)
  if ok and ran.code == 0 then
    vim.health.ok(('%s (%s)'):format(vim.trim(ran.stdout), vim.fn.exepath(program)))
  else
    local why = ok and vim.trim(ran.stderr or '') or tostring(ran)
    vim.health.warn(('%s does not tell its version. %s'):format(program, why))
  end
end

local function check_clients()
  local clients = vim.lsp.get_clients({ name = require('dg.client').NAME })
  if #clients == 0 then
    vim.health.warn('The server does not run.', {
      'It starts with the first file that is opened after require("dg").setup().',
      'Its log: ' .. vim.lsp.log.get_filename(),
    })
  end
  for _, client in ipairs(clients) do
    local buffers = vim.tbl_count(client.attached_buffers)
    vim.health.ok(
      ('The server runs, %d buffers, positions in %s.'):format(buffers, client.offset_encoding)
    )
    if not client:supports_method('textDocument/inlineCompletion') then
      vim.health.error('The server offers no inline completion; update dg-lsp.')
    end
  end
  local status = require('dg.status').current
  local message = status.message ~= '' and ': ' .. status.message or ''
  local report = (status.state == 'error' or status.state == 'warning') and vim.health.warn
    or vim.health.info
  report(('State: %s%s'):format(status.state, message))
end

local function check_keys()
  local keymaps = config.options.keymaps
  if not keymaps then
    vim.health.info('No keys are mapped (keymaps = false).')
    return
  end
  local names =
    { 'accept', 'accept_word', 'accept_line', 'next', 'previous', 'dismiss', 'next_edit' }
  for _, name in ipairs(names) do
    local lhs = keymaps[name]
    if lhs then
      local mapped = vim.fn.maparg(lhs, 'i', false, true)
      if vim.startswith(mapped.desc or '', 'dg: ') then
        vim.health.ok(('%s: %s'):format(lhs, name:gsub('_', ' ')))
      else
        vim.health.warn(('%s is mapped by something else since setup().'):format(lhs), {
          ('Map another key to <Plug>(dg-%s).'):format((name:gsub('_', '-'))),
        })
      end
    end
  end
end

function M.check()
  vim.health.start('dg')
  if vim.fn.has('nvim-0.11') == 1 then
    vim.health.ok('Neovim ' .. tostring(vim.version()))
  else
    vim.health.error('dg needs Neovim 0.11 or newer.')
    return
  end
  local drawn = config.native() and "Neovim's inline completion" or "the plugin's own ghost text"
  vim.health.info('Suggestions are drawn by ' .. drawn .. '.')
  check_program()
  check_clients()
  vim.health.start('dg: keys')
  check_keys()
end

return M

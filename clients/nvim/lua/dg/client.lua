--- The language server: started for the first ordinary buffer, shared by all of them.

local config = require('dg.config')
local status = require('dg.status')

local M = {}

M.NAME = 'dg-lsp'
local MINUTE_MS = 60000
local RESTART_MS = 500

local group ---@type integer?
local deaths = {} ---@type integer[] When the server died, in milliseconds.
local missing_told = false
local stopping = {} ---@type table<integer, true?> Clients that we end ourselves.

---@param buf integer
---@return boolean
function M.is_ordinary(buf)
  return vim.api.nvim_buf_is_loaded(buf)
    and vim.bo[buf].buftype == ''
    and vim.bo[buf].modifiable
    and vim.api.nvim_buf_get_name(buf) ~= ''
    and not vim.api.nvim_buf_get_name(buf):match('^%a[%w+.-]+://')
end

--- The client that serves a buffer.
---@param buf integer
---@return vim.lsp.Client?
function M.of(buf)
  return vim.lsp.get_clients({ bufnr = buf, name = M.NAME })[1]
end

---@param buf integer
---@return string
local function root_of(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  return vim.fs.root(buf, config.options.root_markers) or vim.fs.dirname(name)
end

--- Whether the server says that it proposes next edits, by whatever settings it found.
---@param client vim.lsp.Client
---@return boolean
local function proposes_next_edits(client)
  return vim.tbl_get(client.server_capabilities, 'experimental', 'copilotInlineEdit') == true
end

---@return lsp.ClientCapabilities
local function capabilities()
  local found = vim.lsp.protocol.make_client_capabilities()
  found.textDocument.inlineCompletion = { dynamicRegistration = false }
  return found
end

---@param code integer
---@param signal integer
---@param id integer
local function on_exit(code, signal, id)
  vim.schedule(function()
    require('dg.ghost').forget_all()
    if package.loaded['dg.next_edit'] then
      require('dg.next_edit').forget_all()
    end
    require('dg.edit').forget_all('The server stopped.')
    require('dg.fill').forget_all()
    local expected = (code == 0 and signal == 0) or stopping[id]
    if expected or vim.v.exiting ~= vim.NIL then
      status.stopped('')
      return
    end
    local now = vim.uv.now()
    deaths = vim.tbl_filter(function(at)
      return now - at < MINUTE_MS
    end, deaths)
    table.insert(deaths, now)
    if #deaths > config.options.restarts then
      status.stopped('The server stopped; see :checkhealth dg, then run :DgRestart.')
      vim.notify('dg: ' .. status.current.message, vim.log.levels.ERROR)
      return
    end
    status.stopped('The server stopped and is being started again.')
    vim.defer_fn(M.attach_all, RESTART_MS)
  end)
end

---@param command lsp.Command
---@param ctx { bufnr: integer }
local function from_code_action(command, ctx)
  require('dg.fill').from_code_action(command, ctx)
end

---@param buf integer
---@return vim.lsp.ClientConfig
local function client_config(buf)
  return {
    name = M.NAME,
    cmd = config.options.cmd,
    root_dir = root_of(buf),
    capabilities = capabilities(),
    init_options = config.options.settings,
    settings = { dg = config.options.settings },
    handlers = {
      didChangeStatus = function(_, params)
        status.told(params)
      end,
      -- What :DgStatus asks for, told again after each change; the status line needs no more.
      ['dg/status'] = function() end,
      ['dg/editPreview'] = function(_, params)
        require('dg.edit').on_preview(params)
      end,
      ['workspace/applyEdit'] = function(err, params, ctx)
        return require('dg.edit').on_apply_edit(err, params, ctx)
      end,
    },
    commands = {
      ['dg.edit'] = function(command, ctx)
        require('dg.edit').from_code_action(command, ctx)
      end,
      ['dg.fillHoles'] = from_code_action,
      ['dg.writeDocstring'] = from_code_action,
      ['dg.completeBlock'] = from_code_action,
    },
    on_init = function(client)
      require('dg.native').intercept(client)
      require('dg.focus').begin(client)
    end,
    on_exit = on_exit,
  }
end

--- Attach a buffer, if it is one for us.
---@param buf integer
function M.attach(buf)
  if not M.is_ordinary(buf) or M.of(buf) or not config.options.attach(buf) then
    return
  end
  if vim.fn.executable(config.options.cmd[1]) == 0 then
    if not missing_told then
      missing_told = true
      local program = config.options.cmd[1]
      status.stopped(('%s is not on PATH; install it or set the option cmd.'):format(program))
      vim.notify('dg: ' .. status.current.message, vim.log.levels.WARN)
    end
    return
  end
  vim.lsp.start(client_config(buf), {
    bufnr = buf,
    -- One server, so one model in memory, for every project of this Neovim.
    reuse_client = function(client)
      return client.name == M.NAME and not client:is_stopped()
    end,
  })
end

--- Attach every buffer that is open.
function M.attach_all()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    M.attach(buf)
  end
end

--- End the server and start another.
function M.restart()
  deaths = {}
  missing_told = false
  local clients = vim.lsp.get_clients({ name = M.NAME })
  for _, client in ipairs(clients) do
    stopping[client.id] = true
    client:stop(true)
  end
  vim.wait(2000, function()
    return #vim.lsp.get_clients({ name = M.NAME }) == 0
  end, 20)
  M.attach_all()
end

--- Attach to the buffers that are open and to those that will be.
function M.enable()
  group = vim.api.nvim_create_augroup('dg', { clear = true })
  require('dg.focus').enable(group)
  vim.api.nvim_create_autocmd({ 'BufReadPost', 'BufNewFile', 'BufFilePost', 'FileType' }, {
    group = group,
    callback = function(event)
      -- After the file type is known, for the server is told of it.
      vim.schedule(function()
        if vim.api.nvim_buf_is_valid(event.buf) then
          M.attach(event.buf)
        end
      end)
    end,
  })
  vim.api.nvim_create_autocmd('LspAttach', {
    group = group,
    callback = function(event)
      local client = vim.lsp.get_client_by_id(event.data.client_id)
      if client and client.name == M.NAME then
        require('dg.ghost').attach(event.buf)
        if proposes_next_edits(client) then
          require('dg.next_edit').attach(event.buf)
        end
      end
    end,
  })
  vim.api.nvim_create_autocmd('BufWipeout', {
    group = group,
    callback = function(event)
      require('dg.ghost').detach(event.buf)
      if package.loaded['dg.next_edit'] then
        require('dg.next_edit').detach(event.buf)
      end
      require('dg.pause').forget(event.buf)
    end,
  })
  if vim.v.vim_did_enter == 1 then
    M.attach_all()
  else
    vim.api.nvim_create_autocmd('VimEnter', { group = group, callback = M.attach_all })
  end
end

return M

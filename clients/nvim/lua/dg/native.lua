--- Draws a suggestion with `vim.lsp.inline_completion` (Neovim 0.12), so that its own functions work.
---
--- Neovim alone would show late answers, keep a suggestion that typing has contradicted, and insert
--- typed letters twice, for it neither states versions nor cancels nor shortens. So its requests come
--- to us, and it is handed items that begin exactly at the cursor, again after each keystroke.

local METHOD = 'textDocument/inlineCompletion'

local M = {} ---@class dg.Native: dg.View

---@class dg.Sink
---@field handler lsp.Handler Neovim's.
---@field client_id integer

local sinks = {} ---@type table<integer, dg.Sink?>
local requests = {} ---@type table<integer, function> The clients' unchanged method, by client.

---@param buf integer
---@return boolean
local function enabled(buf)
  return vim.lsp.inline_completion.is_enabled({ bufnr = buf })
end

---@param buf integer
---@param items table[]
local function hand(buf, items)
  local sink = sinks[buf]
  if not sink or not enabled(buf) then
    return
  end
  local context = { client_id = sink.client_id, bufnr = buf, method = METHOD }
  if not pcall(sink.handler, nil, { items = items }, context) then
    sinks[buf] = nil -- Neovim has made a new one, which has not asked yet
  end
end

--- Let Neovim's requests for suggestions come to us.
---@param client vim.lsp.Client
function M.intercept(client)
  local request = client.request
  requests[client.id] = request
  ---@diagnostic disable-next-line: duplicate-set-field
  client.request = function(self, method, params, handler, buf)
    if method ~= METHOD or not handler then
      return request(self, method, params, handler, buf)
    end
    buf = (buf == nil or buf == 0) and vim.api.nvim_get_current_buf() or buf
    sinks[buf] = { handler = handler, client_id = self.id }
    require('dg.ghost').redraw(buf)
    return true, nil
  end
end

--- Ask the server itself.
---@param client vim.lsp.Client
---@param method string
---@param params table
---@param handler lsp.Handler
---@param buf integer
---@return boolean sent
---@return integer? id
function M.request(client, method, params, handler, buf)
  local request = requests[client.id] or client.request
  return request(client, method, params, handler, buf)
end

---@param buf integer
function M.attach(buf)
  vim.lsp.inline_completion.enable(true, { bufnr = buf })
end

---@param buf integer
---@param ghost dg.Ghost
function M.show(buf, ghost)
  local client = require('dg.client').of(buf)
  if not client then
    return
  end
  local position = {
    line = ghost.row,
    character = vim.str_utfindex(ghost.line, client.offset_encoding, ghost.col, false),
  }
  local items = {} ---@type table[]
  for i = 0, #ghost.items - 1 do
    local item = ghost.items[(ghost.index - 1 + i) % #ghost.items + 1]
    items[#items + 1] = {
      insertText = item.text,
      range = { start = position, ['end'] = position },
      command = item.command,
    }
  end
  hand(buf, items)
end

---@param buf integer
function M.hide(buf)
  hand(buf, {})
  -- Outside of insert mode Neovim takes no answers.
  local namespace = vim.api.nvim_create_namespace('nvim.lsp.inline_completion')
  vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
end

---@param buf integer
---@return boolean
function M.is_shown(buf)
  return sinks[buf] ~= nil and enabled(buf)
end

---@param buf integer
---@return boolean
function M.accept(buf)
  vim.go.undolevels = vim.go.undolevels
  return vim.lsp.inline_completion.get({ bufnr = buf })
end

return M

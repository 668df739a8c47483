--- Requests for suggestions: one at a time in a buffer, and late answers dropped.

local client_of = require('dg.client').of
local here = require('dg.here')
local pause = require('dg.pause')
local text = require('dg.text')

---@class dg.Pending
---@field client vim.lsp.Client
---@field id integer?

local METHOD = 'textDocument/inlineCompletion'

local M = {}

M.INVOKED, M.AUTOMATIC = 1, 2

--- Take back what was asked for or is about to be.
---@param b dg.Buffer
function M.cancel(b)
  b.timer:stop()
  local pending = b.pending
  b.pending = nil
  if pending and pending.id and not pending.client:is_stopped() then
    pending.client:cancel_request(pending.id)
  end
end

--- The server's items as texts at the cursor, each once; one meant for elsewhere is left out.
---@param buf integer
---@param result any
---@param position lsp.Position
---@return dg.Item[]
local function items_of(buf, result, position)
  local items = {} ---@type dg.Item[]
  local seen = {} ---@type table<string, true?>
  for _, item in ipairs(result and (result.items or result) or {}) do
    local insert = type(item.insertText) == 'table' and item.insertText.value or item.insertText
    local range = item.range
    local fits = not range
      or (vim.deep_equal(range.start, position) and vim.deep_equal(range['end'], position))
    local found = text.as_buffer(insert, vim.bo[buf].fileformat)
    if fits and found ~= '' and not seen[found] then
      seen[found] = true
      items[#items + 1] = { text = found, command = item.command, given = item, passed = '' }
    end
  end
  return items
end

--- Ask the server; `done` gets the items, unless the text or the cursor has moved on.
---@param buf integer
---@param b dg.Buffer
---@param kind integer
---@param done fun(items: dg.Item[])
---@return boolean asked
function M.send(buf, b, kind, done)
  local client = client_of(buf)
  if not client or not client:supports_method(METHOD, buf) then
    return false
  end
  M.cancel(b)
  local pending = { client = client } ---@type dg.Pending
  b.pending = pending
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  local row, col = here.cursor()
  local position = vim.lsp.util.make_position_params(0, client.offset_encoding).position
  local params = {
    textDocument = {
      uri = vim.uri_from_bufnr(buf),
      version = vim.lsp.util.buf_versions[buf],
    },
    position = position,
    context = { triggerKind = kind },
  }
  local _, id = require('dg.native').request(client, METHOD, params, function(err, result)
    if b.pending ~= pending then
      return
    end
    b.pending = nil
    if err or not here.inserting() or vim.api.nvim_get_current_buf() ~= buf then
      return
    end
    local now_row, now_col = here.cursor()
    local moved = now_row ~= row or now_col ~= col
    if moved or vim.api.nvim_buf_get_changedtick(buf) ~= tick or pause.is_paused(buf) then
      return
    end
    done(items_of(buf, result, position))
  end, buf)
  pending.id = id
  return true
end

return M

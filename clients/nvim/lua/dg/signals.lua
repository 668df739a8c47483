--- What became of a suggestion, told to the server: it was drawn, or a part of it was taken.

local client_of = require('dg.client').of
local text = require('dg.text')

local SHOWN = 'textDocument/didShowCompletion'
local PARTLY_TAKEN = 'textDocument/didPartiallyAcceptCompletion'

local M = {}

---@param buf integer
---@param method string
---@param params table
local function tell(buf, method, params)
  local client = client_of(buf)
  if client then
    client:notify(method, params)
  end
end

--- It is on the screen; told again only after another one was, however often it is drawn.
---@param buf integer
---@param b dg.Buffer
---@param item dg.Item
function M.shown(buf, b, item)
  if item.command and b.told ~= item.given then
    b.told = item.given
    tell(buf, SHOWN, { item = item.given })
  end
end

--- The first `taken` of what was left of it stands in the buffer.
---@param buf integer
---@param item dg.Item
---@param taken string
function M.partly_taken(buf, item, taken)
  if item.command then
    local length = text.utf16_length(item.passed .. taken, item.given.insertText)
    tell(buf, PARTLY_TAKEN, { item = item.given, acceptedLength = length })
  end
end

return M

--- What other servers and linters find wrong in a buffer, as the server reads it.

local M = {}

--- More than a person would look at, and all at once where a file does not parse.
local MOST = 200
local OURS = '^n?vim%.lsp%.dg%-lsp%.%d'

--- Namespaces of diagnostics that come from our own server.
---@return table<integer, true?>
local function ours()
  local found = {} ---@type table<integer, true?>
  for name, id in pairs(vim.api.nvim_get_namespaces()) do
    if name:match(OURS) then
      found[id] = true
    end
  end
  return found
end

---@param buf integer
---@param row integer From 0.
---@param col integer Bytes.
---@param encoding string
---@return lsp.Position
local function position(buf, row, col, encoding)
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ''
  return { line = row, character = vim.str_utfindex(line, encoding, math.min(col, #line), false) }
end

--- Errors and warnings, by whoever finds them but us.
---@param buf integer
---@param encoding string
---@return lsp.Diagnostic[]
function M.of(buf, encoding)
  local own = ours()
  local found = {} ---@type lsp.Diagnostic[]
  local wanted = { severity = { min = vim.diagnostic.severity.WARN } }
  for _, one in ipairs(vim.diagnostic.get(buf, wanted)) do
    if not own[one.namespace] and #found < MOST then
      found[#found + 1] = {
        range = {
          start = position(buf, one.lnum, one.col, encoding),
          ['end'] = position(buf, one.end_lnum or one.lnum, one.end_col or one.col, encoding),
        },
        message = one.message,
        severity = one.severity,
        source = one.source,
        code = one.code,
        tags = one._tags and one._tags.unnecessary and { 1 } or nil,
      }
    end
  end
  return found
end

return M

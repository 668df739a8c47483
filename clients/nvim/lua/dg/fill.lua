--- What the server writes by one edit: code in place of `___` marks, a docstring, a block.

local client_of = require('dg.client').of

---@class dg.Filling
---@field client vim.lsp.Client
---@field id integer?

local M = {}

local FILL = 'dg.fillHoles'
local METHOD = 'workspace/executeCommand'

local fillings = {} ---@type table<integer, dg.Filling?>

---@param message string
---@param level? integer
local function say(message, level)
  vim.notify('dg: ' .. message, level or vim.log.levels.INFO)
end

---@param buf integer
---@param command string
---@param arguments table
local function request(buf, command, arguments)
  local client = client_of(buf)
  if not client then
    say('No server is attached to this buffer; see :checkhealth dg.', vim.log.levels.WARN)
    return
  end
  M.stop(buf)
  local filling = { client = client } ---@type dg.Filling
  fillings[buf] = filling
  local params = { command = command, arguments = { arguments } }
  local _, id = client:request(METHOD, params, function(err, result)
    if fillings[buf] ~= filling then
      return
    end
    fillings[buf] = nil
    local reason = err and err.message or (result and result.reason) or ''
    if reason ~= '' then
      say(reason, vim.log.levels.WARN)
    end
  end, buf)
  filling.id = id
end

--- Fill the marks of whole lines, or of the whole buffer.
---@param buf integer
---@param first? integer From 1.
---@param last? integer Included.
function M.start(buf, first, last)
  local arguments = {
    uri = vim.uri_from_bufnr(buf),
    version = vim.lsp.util.buf_versions[buf],
  }
  local client = client_of(buf)
  if first and last and client then
    local line = vim.api.nvim_buf_get_lines(buf, last - 1, last, false)[1]
    arguments.range = {
      start = { line = first - 1, character = 0 },
      ['end'] = {
        line = last - 1,
        character = vim.str_utfindex(line, client.offset_encoding, #line, false),
      },
    }
  end
  request(buf, FILL, arguments)
end

--- A code action was chosen: "Fill the holes", "Write the docstring" or "Complete the block".
---@param command lsp.Command
---@param ctx { bufnr: integer }
function M.from_code_action(command, ctx)
  request(ctx.bufnr, command.command, command.arguments[1])
end

--- Stop the work; what is written already stays.
---@param buf integer
---@return boolean stopped
function M.stop(buf)
  local filling = fillings[buf]
  fillings[buf] = nil
  if not filling then
    return false
  end
  if filling.id and not filling.client:is_stopped() then
    filling.client:cancel_request(filling.id)
  end
  return true
end

--- The server is gone, and with it what it worked on.
function M.forget_all()
  fillings = {}
end

return M

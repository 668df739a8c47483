--- The commands; what they do is loaded when one runs.

local M = {}

---@param message string
---@param level? integer
local function say(message, level)
  vim.notify('dg: ' .. message, level or vim.log.levels.INFO)
end

---@param value any
---@return boolean
local function is_told(value)
  return value ~= nil and value ~= vim.NIL
end

---@param counts table The answer of dg.status.
---@param report table The answer of dg/status.
---@return string
local function sentence(counts, report)
  local lines = { ('dg: the model is %s%s'):format(counts.model, counts.busy and ' (busy)' or '') }
  if counts.message ~= '' then
    table.insert(lines, counts.message)
  end
  if is_told(report.lastReason) and report.lastReason.message ~= counts.message then
    table.insert(lines, 'Nothing is suggested: ' .. report.lastReason.message)
  elseif not is_told(report.lastReason) and is_told(report.lastLatencyMs) then
    table.insert(lines, ('The last suggestion took %.0f ms.'):format(report.lastLatencyMs))
  end
  vim.list_extend(lines, report.problems or {})
  table.insert(
    lines,
    ('%d documents, %d requests in flight, %d suggestions taken'):format(
      counts.documents,
      counts.inFlight,
      counts.accepted
    )
  )
  if require('dg.pause').is_paused(vim.api.nvim_get_current_buf()) then
    table.insert(lines, 'Suggestions are paused here.')
  end
  return table.concat(lines, '\n')
end

local function status()
  local client = require('dg.client').of(0)
  if not client then
    local message = require('dg.status').current.message
    local why = message ~= '' and message or 'No server is attached to this buffer.'
    say(why .. ' See :checkhealth dg.', vim.log.levels.WARN)
    return
  end
  local params = { command = 'dg.status', arguments = { vim.empty_dict() } }
  client:request('workspace/executeCommand', params, function(err, counts)
    if err then
      say(err.message, vim.log.levels.WARN)
      return
    end
    client:request('dg/status', nil, function(_, report)
      vim.notify(sentence(counts, report or {}))
    end, 0)
  end, 0)
end

local SCOPES = { 'buffer', 'session' }

---@param scope string
---@return 'buffer'|'session'|nil
local function scope_of(scope)
  if scope == '' or scope == 'buffer' then
    return 'buffer'
  elseif scope == 'session' then
    return 'session'
  end
  say('Say "buffer" or "session".', vim.log.levels.WARN)
end

---@param call vim.api.keyset.create_user_command.command_args
local function pause(call)
  local scope = scope_of(call.args)
  if scope then
    local paused = require('dg.pause').toggle(scope, vim.api.nvim_get_current_buf())
    local where = scope == 'session' and 'in this session' or 'in this buffer'
    say(('Suggestions are %s %s.'):format(paused and 'paused' or 'on', where))
  end
end

local COMMANDS = {
  DgEdit = {
    function(call)
      local buf = vim.api.nvim_get_current_buf()
      require('dg.edit').start(buf, call.line1, call.line2, call.args)
    end,
    { nargs = '*', range = true, desc = 'Edit lines by instruction' },
  },
  DgAccept = {
    function()
      require('dg.edit').accept()
    end,
    { desc = 'Apply the edit under review' },
  },
  DgDiscard = {
    function()
      if not require('dg.fill').stop(vim.api.nvim_get_current_buf()) then
        require('dg.edit').discard()
      end
    end,
    { desc = 'Drop the edit under review, or stop filling' },
  },
  DgRetry = {
    function(call)
      require('dg.edit').retry(call.args)
    end,
    { nargs = '*', desc = 'Ask again, with another instruction' },
  },
  DgFill = {
    function(call)
      local buf = vim.api.nvim_get_current_buf()
      local some = call.range > 0
      require('dg.fill').start(buf, some and call.line1 or nil, some and call.line2 or nil)
    end,
    { range = true, desc = 'Put code in place of ___ marks' },
  },
  DgNextEdit = {
    function(call)
      local dg = require('dg')
      if not (call.bang and dg.dismiss_next_edit or dg.next_edit)() then
        say('No next edit is proposed in this buffer.')
      end
    end,
    { bang = true, desc = 'Go to the next edit, or make it; ! sends it away' },
  },
  DgStatus = { status, { desc = 'What the server does' } },
  DgExplain = {
    function()
      require('dg.explain').run()
    end,
    { desc = 'What the model is shown at the cursor' },
  },
  DgPause = {
    pause,
    {
      nargs = '?',
      complete = function()
        return SCOPES
      end,
      desc = 'Pause or resume suggestions',
    },
  },
  DgRestart = {
    function()
      require('dg.client').restart()
    end,
    { desc = 'Start the server again' },
  },
}

--- Define them; harmless when done twice.
function M.define()
  for name, command in pairs(COMMANDS) do
    vim.api.nvim_create_user_command(name, command[1], command[2])
  end
end

return M

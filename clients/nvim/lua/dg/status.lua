--- What is known of the server: the state of its model, and what the user paused.

---@class dg.Status
---@field state 'stopped'|'loading'|'ready'|'warning'|'error'|'off'
---@field busy boolean
---@field message string

local M = {}

---@type dg.Status
M.current = { state = 'stopped', busy = false, message = '' }

local STATES = { Normal = 'ready', Warning = 'warning', Error = 'error', Inactive = 'off' }
local MARKS = {
  stopped = 'off',
  off = 'off',
  loading = 'loading',
  ready = 'ready',
  warning = 'warning',
  error = 'failed',
}

---@param status dg.Status
local function set(status)
  if vim.deep_equal(status, M.current) then
    return
  end
  M.current = status
  vim.api.nvim_exec_autocmds('User', { pattern = 'DgStatus', modeline = false })
  vim.cmd.redrawstatus({ bang = true })
end

--- `didChangeStatus` came.
---@param params { busy?: boolean, kind?: string, message?: string }
function M.told(params)
  local state = STATES[params.kind] or 'off'
  local busy = params.busy == true
  if state == 'off' and busy then
    state = 'loading'
  end
  set({ state = state, busy = busy, message = params.message or '' })
end

--- The server is gone.
---@param message string
function M.stopped(message)
  set({ state = 'stopped', busy = false, message = message })
end

--- One or two words for a statusline, '' where there is nothing to say.
---@param buf integer
---@return string
function M.line(buf)
  local pause = require('dg.pause')
  if pause.is_paused(buf) then
    return 'dg: paused'
  end
  local attached = require('dg.client').of(buf) ~= nil
  if not attached and M.current.state ~= 'stopped' then
    return ''
  end
  if not attached and M.current.message == '' then
    return ''
  end
  local word = MARKS[M.current.state]
  if M.current.busy and M.current.state == 'ready' then
    word = 'busy'
  end
  return 'dg: ' .. word
end

return M

--- No suggestions for a while: in one buffer, or in the whole session.

local M = {}

local session = false
local buffers = {} ---@type table<integer, true?>

---@param buf integer
---@return boolean
function M.is_paused(buf)
  return session or buffers[buf] == true
end

---@param scope 'buffer'|'session'
---@param buf integer
---@param paused boolean
function M.set(scope, buf, paused)
  if scope == 'session' then
    session = paused
    if not paused then
      buffers = {}
    end
  else
    buffers[buf] = paused or nil
  end
  if M.is_paused(buf) then
    require('dg.ghost').dismiss(buf)
    if package.loaded['dg.next_edit'] then
      require('dg.next_edit').forget(buf)
    end
  end
  vim.cmd.redrawstatus({ bang = true })
end

--- Pause what runs, or let run what is paused.
---@param scope 'buffer'|'session'
---@param buf integer
---@return boolean paused
function M.toggle(scope, buf)
  local paused = scope == 'session' and session or buffers[buf] == true
  M.set(scope, buf, not paused)
  return not paused
end

---@param buf integer
function M.forget(buf)
  buffers[buf] = nil
end

return M

--- Edits by instruction: asked for, shown as a diff, then applied in one undo step or dropped.

local client_of = require('dg.client').of
local config = require('dg.config')
local lent_keys = require('dg.lent_keys')
local preview = require('dg.preview')
local text = require('dg.text')

---@class dg.Session
---@field buf integer
---@field instruction string
---@field region integer Extmark over the chosen lines.
---@field old string[] The chosen lines.
---@field hunks dg.Hunk[]?
---@field state 'asking'|'streaming'|'review'|'applying'
---@field unclaimed table? A preview that ended before the server told whose it is.
---@field id string? The server's name of the edit, where it streams drafts.
---@field client vim.lsp.Client
---@field request integer?
---@field keys dg.Lent
---@field group integer?

local M = {}

local namespace = vim.api.nvim_create_namespace('dg.edit.region')
local sessions = {} ---@type table<integer, dg.Session?>
local ended = {} ---@type table<string, true?> Edits of this server that we are done with.

local FOR_REVIEW = 'shown to the user for review'
local ACCEPT, DISCARD = 'dg.acceptEdit', 'dg.discardEdit'
local METHOD = 'workspace/executeCommand'

---@param message string
---@param level? integer
local function say(message, level)
  vim.notify('dg: ' .. message, level or vim.log.levels.INFO)
end

---@param session dg.Session
---@return integer first
---@return integer last Exclusive.
local function region_of(session)
  local mark =
    vim.api.nvim_buf_get_extmark_by_id(session.buf, namespace, session.region, { details = true })
  return mark[1], mark[3].end_row + 1
end

---@param session dg.Session
---@return boolean
local function is_untouched(session)
  local first, last = region_of(session)
  local now = vim.api.nvim_buf_get_lines(session.buf, first, last, false)
  return vim.deep_equal(now, session.old)
end

--- Whether the server streams drafts and leaves applying to us.
---@param client vim.lsp.Client
---@return boolean
local function streams(client)
  local provider = client.server_capabilities.executeCommandProvider
  return provider ~= nil and vim.list_contains(provider.commands or {}, ACCEPT)
end

---@param session dg.Session
---@param command string
---@param done? lsp.Handler
local function tell(session, command, done)
  local params = { command = command, arguments = { { id = session.id } } }
  session.client:request(METHOD, params, done or function() end, session.buf)
end

---@param session dg.Session
local function close(session)
  sessions[session.buf] = nil
  if session.id then
    ended[session.id] = true
  end
  if session.group then
    vim.api.nvim_del_augroup_by_id(session.group)
  end
  if not session.client:is_stopped() then
    if session.request then
      session.client:cancel_request(session.request)
    end
    if session.id and session.state == 'review' then
      tell(session, DISCARD)
    end
  end
  if not vim.api.nvim_buf_is_valid(session.buf) then
    return
  end
  lent_keys.give_back(session.buf, session.keys)
  preview.hide(session.buf)
  vim.api.nvim_buf_clear_namespace(session.buf, namespace, 0, -1)
  require('dg.next_edit').update(session.buf)
end

---@param session dg.Session
local function map_keys(session)
  local keymaps = config.options.keymaps
  if not keymaps then
    return
  end
  local actions = {
    edit_accept = M.accept,
    edit_discard = M.discard,
    edit_retry = M.retry,
  }
  for name, action in pairs(actions) do
    local lhs = keymaps[name]
    local now = session.state == 'review' or name == 'edit_discard'
    if lhs and now then
      lent_keys.take(session.buf, session.keys, lhs, function()
        action()
      end, name)
    end
  end
end

---@param state string
---@return string
local function hint(state)
  local keymaps = config.options.keymaps
  local parts = {} ---@type string[]
  if state == 'streaming' then
    return ('dg: editing…, %s discard'):format(keymaps and keymaps.edit_discard or ':DgDiscard')
  end
  for _, pair in ipairs({
    { 'accept', 'DgAccept' },
    { 'discard', 'DgDiscard' },
    { 'retry', 'DgRetry' },
  }) do
    local key = keymaps and keymaps['edit_' .. pair[1]] or (':' .. pair[2])
    parts[#parts + 1] = key .. ' ' .. pair[1]
  end
  return 'dg: ' .. table.concat(parts, ', ')
end

--- Show a draft, or the edit that may be accepted.
---@param session dg.Session
---@param new string[]
---@param state 'streaming'|'review'
local function show(session, new, state)
  session.hunks = preview.hunks(session.old, new)
  session.state = state
  local first = region_of(session)
  if #session.hunks > 0 then
    preview.show(session.buf, first, session.hunks, hint(state))
  else
    preview.note(session.buf, first, hint(state))
  end
  map_keys(session)
end

--- The instruction, or what the user types when there is none.
---@param instruction string
---@param default string
---@param done fun(instruction: string)
local function with_instruction(instruction, default, done)
  if instruction ~= '' then
    done(instruction)
    return
  end
  vim.ui.input({ prompt = 'Edit with instruction: ', default = default }, function(typed)
    if typed and vim.trim(typed) ~= '' then
      done(typed)
    end
  end)
end

---@param session dg.Session
---@param result any
---@param err lsp.ResponseError?
local function on_answer(session, err, result)
  session.request = nil
  local unclaimed = session.unclaimed
  if unclaimed and result and result.id == unclaimed.id and not session.id then
    session.id = unclaimed.id
    M.on_preview(unclaimed)
  end
  local waits = session.state == 'asking' or session.state == 'streaming'
  if sessions[session.buf] ~= session or not waits or (result and result.pending) then
    return
  end
  close(session)
  local reason = err and err.message or (result and result.reason) or ''
  say(reason ~= '' and reason or 'The server proposed no edit.', vim.log.levels.WARN)
end

---@param buf integer
---@param first integer From 0.
---@param last integer Exclusive.
---@param instruction string
local function request(buf, first, last, instruction)
  local client = client_of(buf)
  if not client then
    say('No server is attached to this buffer; see :checkhealth dg.', vim.log.levels.WARN)
    return
  end
  local old = vim.api.nvim_buf_get_lines(buf, first, last, false)
  local length = #old[#old]
  local session = { ---@type dg.Session
    buf = buf,
    instruction = instruction,
    old = old,
    state = 'asking',
    client = client,
    keys = {},
    region = vim.api.nvim_buf_set_extmark(buf, namespace, first, 0, {
      end_row = last - 1,
      end_col = length,
      right_gravity = false,
      end_right_gravity = true,
    }),
  }
  sessions[buf] = session
  require('dg.next_edit').update(buf)
  session.group = vim.api.nvim_create_augroup('dg.edit.' .. buf, { clear = true })
  vim.api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI' }, {
    group = session.group,
    buffer = buf,
    callback = function()
      if sessions[buf] == session and not is_untouched(session) then
        close(session)
        say('The lines changed, so the edit was dropped.')
      end
    end,
  })
  preview.note(buf, first, 'dg: editing…')
  map_keys(session)
  local character = vim.str_utfindex(old[#old], client.offset_encoding, length, false)
  local arguments = {
    uri = vim.uri_from_bufnr(buf),
    range = {
      start = { line = first, character = 0 },
      ['end'] = { line = last - 1, character = character },
    },
    instruction = instruction,
    version = vim.lsp.util.buf_versions[buf],
    preview = streams(client) or nil,
  }
  local params = { command = 'dg.edit', arguments = { arguments } }
  local _, id = client:request(METHOD, params, function(err, result)
    on_answer(session, err, result)
  end, buf)
  session.request = id
end

--- Ask for an edit of whole lines.
---@param buf integer
---@param first integer From 1.
---@param last integer Included.
---@param instruction string Asked for when empty.
function M.start(buf, first, last, instruction)
  with_instruction(instruction, '', function(known)
    if sessions[buf] then
      close(sessions[buf])
    end
    request(buf, first - 1, last, known)
  end)
end

--- The code action "Edit with instruction…" was chosen.
---@param command lsp.Command
---@param ctx { bufnr: integer }
function M.from_code_action(command, ctx)
  local given = command.arguments and command.arguments[1] or {}
  local range = given.range
  local last = range['end'].line + 1
  if range['end'].character == 0 and range['end'].line > range.start.line then
    last = last - 1
  end
  M.start(ctx.bufnr, range.start.line + 1, last, given.instruction or '')
end

---@param edit lsp.WorkspaceEdit
---@return integer? buf
---@return lsp.TextEdit[] edits
---@return integer? version
local function only_document(edit)
  local change = (edit.documentChanges or {})[1]
  if change and change.textDocument and #edit.documentChanges == 1 then
    local version = change.textDocument.version
    return vim.uri_to_bufnr(change.textDocument.uri),
      change.edits,
      type(version) == 'number' and version or nil
  end
  local uri, edits = next(edit.changes or {})
  return uri and vim.uri_to_bufnr(uri), edits or {}, nil
end

---@param session dg.Session
---@param edits lsp.TextEdit[]
---@return lsp.TextEdit[]? moved As from the region's first line; nil when one is outside of it.
local function in_region(session, edits)
  local first, last = region_of(session)
  local moved = vim.deepcopy(edits)
  for _, edit in ipairs(moved) do
    local from, to = edit.range.start, edit.range['end']
    if from.line < first or to.line >= last then
      return nil
    end
    from.line, to.line = from.line - first, to.line - first
  end
  return moved
end

---@param session dg.Session
---@return lsp.ApplyWorkspaceEditResult
local function apply(session)
  local untouched = is_untouched(session)
  local first = region_of(session)
  close(session)
  if not untouched then
    return { applied = false, failureReason = 'the lines changed, so the edit was dropped' }
  elseif not vim.bo[session.buf].modifiable then
    return { applied = false, failureReason = 'the buffer cannot be changed' }
  end
  -- From the last to the first: earlier lines keep their numbers, and marks outside stay.
  for number = #session.hunks, 1, -1 do
    local hunk = session.hunks[number]
    local at = first + hunk.first
    vim.api.nvim_buf_set_lines(session.buf, at, at + hunk.count, true, hunk.lines)
  end
  return { applied = true }
end

--- dg/editPreview: a draft of an edit, its end, or why there is none.
---@param params { id: string, uri: string, text: string, step: integer, done?: any, reason?: string }
function M.on_preview(params)
  local buf = vim.uri_to_bufnr(params.uri)
  local session = sessions[buf]
  if not session or session.state == 'applying' or ended[params.id] then
    return
  end
  local over = params.done ~= nil and params.done ~= vim.NIL
  if session.id ~= params.id then
    if over then
      session.unclaimed = params -- ours, or that of a request which was cancelled
      return
    elseif session.id and params.step > 0 then
      return
    end
    session.id = params.id
  end
  if over and (params.reason or '') ~= '' then
    close(session)
    say(params.reason, vim.log.levels.WARN)
  elseif session.state ~= 'review' then
    local lines = text.as_buffer(params.text, vim.bo[buf].fileformat)
    show(session, vim.split(lines, '\n', { plain = true }), over and 'review' or 'streaming')
  end
end

--- workspace/applyEdit: an edit that we asked for is shown, any other one is applied.
---@param err lsp.ResponseError?
---@param params lsp.ApplyWorkspaceEditParams
---@param ctx lsp.HandlerContext
---@return lsp.ApplyWorkspaceEditResult
function M.on_apply_edit(err, params, ctx)
  local buf, edits, version = only_document(params.edit)
  if buf and version and vim.lsp.util.buf_versions[buf] ~= version then
    return { applied = false, failureReason = 'the buffer changed meanwhile' }
  end
  local session = buf and sessions[buf]
  if session and session.state == 'applying' then
    return apply(session)
  end
  if not session or session.state ~= 'asking' or streams(session.client) then
    return vim.lsp.handlers['workspace/applyEdit'](err, params, ctx)
  end
  local moved = in_region(session, edits)
  if not moved then
    return { applied = false, failureReason = 'it reaches beyond the chosen lines' }
  end
  local encoding = session.client.offset_encoding
  show(session, text.edited(session.old, moved, encoding, vim.bo[buf].fileformat), 'review')
  return { applied = false, failureReason = FOR_REVIEW }
end

---@param state? 'review'
---@return dg.Session?
local function session_here(state)
  local session = sessions[vim.api.nvim_get_current_buf()]
  if not session or (state and session.state ~= state) then
    say('There is no edit to review in this buffer.')
    return nil
  end
  return session
end

--- Apply the edit under review, as one undo step.
function M.accept()
  local session = session_here('review')
  if not session then
    return
  end
  session.state = 'applying'
  if not session.id then
    local result = apply(session)
    if not result.applied then
      say(result.failureReason, vim.log.levels.WARN)
    end
    return
  end
  -- The server answers with workspace/applyEdit, so it knows what became of its edit.
  tell(session, ACCEPT, function(err, result)
    if sessions[session.buf] == session then
      close(session)
    end
    local reason = err and err.message or (result and not result.applied and result.reason)
    if reason and reason ~= '' then
      say(reason, vim.log.levels.WARN)
    end
  end)
end

--- Drop the edit, or stop asking for it; the buffer stays as it is.
function M.discard()
  local session = session_here()
  if session then
    close(session)
  end
end

--- Ask again for the same lines.
---@param instruction? string Asked for when nil or empty.
function M.retry(instruction)
  local session = session_here()
  if not session then
    return
  end
  with_instruction(instruction or '', session.instruction, function(known)
    if sessions[session.buf] ~= session then
      return
    end
    local first, last = region_of(session)
    close(session)
    request(session.buf, first, last, known)
  end)
end

--- Whether the current buffer has an edit that is asked for or under review.
---@return 'asking'|'streaming'|'review'|'applying'|nil
function M.state()
  local session = sessions[vim.api.nvim_get_current_buf()]
  return session and session.state
end

--- Whether a buffer has an edit that is asked for or under review.
---@param buf integer
---@return boolean
function M.is_busy(buf)
  return sessions[buf] ~= nil
end

--- The server is gone, and with it every edit.
---@param message string
function M.forget_all(message)
  ended = {}
  for _, buf in ipairs(vim.tbl_keys(sessions)) do
    local found = sessions[buf]
    if found then
      close(found)
      say(message, vim.log.levels.WARN)
    end
  end
end

return M

--- Next edits: asked for when an edit pauses, kept while they fit, gone to, made or dismissed.

local client_of = require('dg.client').of
local here = require('dg.here')
local of_page = require('dg.next_page')
local pause = require('dg.pause')
local spots = require('dg.spot')
local troubles = require('dg.troubles')
local view = require('dg.next_view')

local METHOD, EXECUTE = 'textDocument/copilotInlineEdit', 'workspace/executeCommand'
local SHOWN_METHOD = 'textDocument/didShowInlineEdit'
local AUTOMATIC = 2 --- The protocol's word for "not asked for by hand".
local PAUSE_MS = 250 --- Somebody who types has shorter pauses between two keys.

local M = {}

local pages = {} ---@type table<integer, dg.Page?>

---@param page dg.Page
---@return boolean
local function is_wanted(page)
  local mode = vim.api.nvim_get_mode().mode:sub(1, 1)
  return vim.api.nvim_get_current_buf() == page.buf
    and (mode == 'n' or mode == 'i')
    and not pause.is_paused(page.buf)
    and vim.fn.reg_executing() == ''
end

--- Whether something else is shown that has the same keys.
---@param buf integer
---@return boolean
local function is_busy(buf)
  return package.loaded['dg.edit'] ~= nil and require('dg.edit').is_busy(buf)
end

---@param page dg.Page
---@return dg.Proposal?
local function top(page)
  if page.taking or is_busy(page.buf) or pause.is_paused(page.buf) then
    return nil
  end
  return page.proposals[#page.proposals]
end

--- Show what there is to show now.
---@param page dg.Page
local function update(page)
  local proposal = top(page)
  if not proposal or not spots.is_kept(proposal.line) then
    view.hide(page.buf, page.shown)
    return
  end
  view.show(page.buf, page.shown, proposal, M.go, M.dismiss)
  if proposal.command and not proposal.told then
    proposal.told = true
    local client = client_of(page.buf)
    if client then
      client:notify(SHOWN_METHOD, { item = { command = proposal.command } })
    end
  end
end

---@param page dg.Page
local function forget_unanswered(page)
  if page.unanswered then
    spots.drop(page.unanswered.cause)
    page.unanswered = nil
  end
end

--- Take back what was asked or is about to be.
---@param page dg.Page
local function stop(page)
  page.timer:stop()
  forget_unanswered(page)
  local asked = page.asked
  page.asked, page.taking = nil, nil
  if asked then
    spots.drop(asked.cause)
    if asked.id and not asked.client:is_stopped() then
      asked.client:cancel_request(asked.id)
    end
  end
end

--- The first edit of an answer, if it is one of a line of the version that was asked about.
---@param page dg.Page
---@param asked dg.Question
---@param result any
---@return dg.Proposal?
local function proposal_of(page, asked, result)
  local edit = ((result or {}).edits or {})[1]
  local buf = page.buf
  if not edit or edit.textDocument.uri ~= vim.uri_from_bufnr(buf) or edit.text:find('[\r\n]') then
    return nil
  end
  local from, to = edit.range.start, edit.range['end']
  local line = vim.api.nvim_buf_get_lines(buf, from.line, from.line + 1, false)[1]
  local cause = from.line == to.line and line and spots.whole_words(asked.cause)
  if not cause then
    return nil
  end
  local encoding = asked.client.offset_encoding
  return {
    line = spots.keep(buf, { from.line, 0, from.line, #line }, 'line'),
    cause = cause,
    first = vim.str_byteindex(line, encoding, from.character, false),
    last = vim.str_byteindex(line, encoding, to.character, false),
    text = edit.text,
    command = edit.command,
    told = false,
  }
end

local ask ---@type fun(page: dg.Page)

---@param page dg.Page
---@param delay integer Milliseconds.
local function ask_soon(page, delay)
  page.timer:start(
    delay,
    0,
    vim.schedule_wrap(function()
      if pages[page.buf] == page then
        ask(page)
      end
    end)
  )
end

--- Ask again about a version for which nothing was proposed, if others found out more about it.
---@param page dg.Page
local function diagnosed(page)
  local waiting = page.unanswered
  if not waiting or vim.api.nvim_buf_get_changedtick(page.buf) ~= waiting.tick then
    return
  end
  local now = troubles.of(page.buf, waiting.client.offset_encoding)
  if not vim.deep_equal(now, waiting.diagnostics) then
    page.unanswered = nil
    spots.drop(page.cause)
    page.cause = waiting.cause
    ask_soon(page, PAUSE_MS)
  end
end

---@param page dg.Page
---@param asked dg.Question
---@param err lsp.ResponseError?
---@param result any
local function answered(page, asked, err, result)
  if page.asked ~= asked then
    return
  end
  page.asked, page.taking = nil, nil
  local is_late = vim.api.nvim_buf_get_changedtick(page.buf) ~= asked.tick
  local proposal = not err and not is_late and proposal_of(page, asked, result)
  if proposal then
    spots.drop(asked.cause)
    of_page.add(page, proposal)
  elseif not is_late then
    page.unanswered = asked
    diagnosed(page) -- what was found meanwhile
  else
    spots.drop(asked.cause)
  end
  update(page)
end

ask = function(page)
  local buf, client, cause = page.buf, client_of(page.buf), page.cause
  if not client or not cause or not is_wanted(page) then
    page.taking = nil
    update(page)
    return
  end
  page.cause = nil
  local encoding = client.offset_encoding
  local asked = { ---@type dg.Question
    client = client,
    tick = vim.api.nvim_buf_get_changedtick(buf),
    cause = cause,
    diagnostics = troubles.of(buf, encoding),
  }
  page.asked = asked
  local _, id = client:request(METHOD, {
    textDocument = {
      uri = vim.uri_from_bufnr(buf),
      version = vim.lsp.util.buf_versions[buf],
    },
    position = vim.lsp.util.make_position_params(0, encoding).position,
    context = { triggerKind = AUTOMATIC, diagnostics = asked.diagnostics },
  }, function(err, result)
    answered(page, asked, err, result)
  end, buf)
  asked.id = id
end

--- The text has changed; `range` is where.
---@param page dg.Page
---@param range [integer, integer, integer, integer]
local function changed(page, range)
  page.changes = page.changes - 1
  -- Of several that were made at once only the last knows where it is now.
  if pages[page.buf] ~= page or page.changes > 0 then
    return
  end
  local is_made = page.taking == vim.api.nvim_buf_get_changedtick(page.buf)
  if not is_made then
    stop(page)
  end
  -- Who takes something back does not want what followed from it.
  local taken_back = of_page.is_taken_back(page)
  of_page.filter(page, function(proposal)
    return not taken_back and spots.is_kept(proposal.line) and spots.is_kept(proposal.cause)
  end)
  of_page.note_cause(page, range)
  if not taken_back then
    ask_soon(page, is_made and 0 or PAUSE_MS)
  end
  update(page)
end

--- Follow a buffer; called when a server that proposes next edits is attached to it.
---@param buf integer
function M.attach(buf)
  M.detach(buf)
  local number = of_page.change_number(buf)
  local page = { ---@type dg.Page
    buf = buf,
    group = vim.api.nvim_create_augroup('dg.next_edit.' .. buf, { clear = true }),
    timer = assert(vim.uv.new_timer()),
    changes = 0,
    proposals = {},
    undo = { last = number, now = number },
    shown = { lent = {} },
  }
  pages[buf] = page
  vim.api.nvim_buf_attach(buf, false, {
    on_bytes = function(_, _, _, row, col, _, _, _, _, new_row, new_col)
      if pages[buf] ~= page then
        return true
      end
      local end_col = new_row == 0 and col + new_col or new_col
      page.changes = page.changes + 1
      vim.schedule(function()
        changed(page, { row, col, row + new_row, end_col })
      end)
    end,
    on_reload = function()
      vim.schedule(function()
        M.forget(buf)
      end)
    end,
  })
  vim.api.nvim_create_autocmd('DiagnosticChanged', {
    group = page.group,
    buffer = buf,
    callback = function()
      diagnosed(page)
    end,
  })
  vim.api.nvim_create_autocmd({ 'CursorMoved', 'CursorMovedI', 'WinScrolled', 'BufEnter' }, {
    group = page.group,
    buffer = buf,
    callback = function()
      if #page.proposals > 0 then
        update(page)
      end
    end,
  })
end

---@param buf integer
function M.detach(buf)
  local page = pages[buf]
  if not page then
    return
  end
  M.forget(buf)
  pages[buf] = nil
  page.timer:close()
  vim.api.nvim_del_augroup_by_id(page.group)
end

--- Forget what is proposed for a buffer.
---@param buf integer
function M.forget(buf)
  local page = pages[buf]
  if page then
    stop(page)
    of_page.filter(page, function()
      return false
    end)
    spots.drop(page.cause)
    page.cause = nil
    view.hide(buf, page.shown)
  end
end

--- The server is gone, and with it all that it proposed.
function M.forget_all()
  for _, buf in ipairs(vim.tbl_keys(pages)) do
    M.detach(buf)
  end
end

--- Something else came or went that has the keys.
---@param buf integer
function M.update(buf)
  if pages[buf] then
    update(pages[buf])
  end
end

--- What is shown in the current buffer.
---@return dg.Page?
---@return dg.Proposal?
local function shown_here()
  local page = pages[vim.api.nvim_get_current_buf()]
  local proposal = page and top(page)
  if page and proposal and spots.is_kept(proposal.line) then
    return page, proposal
  end
end

---@param page dg.Page
---@param proposal dg.Proposal
local function make(page, proposal)
  local row = spots.range(proposal.line) --[[@as integer]]
  stop(page)
  of_page.filter(page, function(other)
    return other ~= proposal
  end)
  here.replace(page.buf, row, proposal.first, proposal.last, proposal.text)
  page.taking = vim.api.nvim_buf_get_changedtick(page.buf)
  local client, command = client_of(page.buf), proposal.command
  if client and command then
    client:request(
      EXECUTE,
      { command = command.command, arguments = command.arguments },
      function() end,
      page.buf
    )
  end
  update(page)
end

--- Go to the edit; at the edit, make it.
---@return boolean done false when none is shown
function M.go()
  local page, proposal = shown_here()
  if not page or not proposal then
    return false
  end
  local row, col = here.cursor()
  local seen = view.readable(proposal)
  local there = spots.range(proposal.line) --[[@as integer]]
  -- In normal mode the cursor cannot stand behind the line.
  local first = math.max(math.min(seen.first, #proposal.line.text - 1), 0)
  if row == there and col >= first and col <= seen.last then
    make(page, proposal)
  else
    vim.cmd("normal! m'")
    vim.api.nvim_win_set_cursor(0, { there + 1, proposal.first })
    vim.cmd('normal! zv')
    update(page)
  end
  return true
end

--- Send what is proposed for the current buffer away; its text stays as it is.
---@return boolean done false when none is shown
function M.dismiss()
  local page, proposal = shown_here()
  if not page or not proposal then
    return false
  end
  M.forget(page.buf)
  return true
end

--- Whether one is shown in the current buffer.
---@return boolean
function M.visible()
  return select(2, shown_here()) ~= nil
end

return M

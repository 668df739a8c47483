--- The suggestion at the cursor: asked for, kept in step with typing, taken in parts.

local ask = require('dg.ask')
local client_of = require('dg.client').of
local config = require('dg.config')
local here = require('dg.here')
local pause = require('dg.pause')
local signals = require('dg.signals')
local text = require('dg.text')

---@class dg.Item
---@field text string What would stand at the cursor, with the buffer's line breaks.
---@field command lsp.Command? Tells the server that the item was taken.
---@field given lsp.InlineCompletionItem As the server sent it.
---@field passed string What of it stands in the buffer since.

---@class dg.Ghost
---@field items dg.Item[] Those that fit what was typed since.
---@field index integer The one that is shown.
---@field row integer From 0.
---@field col integer Bytes before the cursor.
---@field line string The line without the suggestion.
---@field tick integer The buffer's change that this belongs to.
---@field stale boolean Whether text elsewhere changed.

---@class dg.Buffer
---@field ghost dg.Ghost?
---@field pending dg.Pending?
---@field timer uv.uv_timer_t
---@field group integer
---@field seen string Change and cursor that were handled last.
---@field told lsp.InlineCompletionItem? What the server was told last that it is shown.

local M = {}

local buffers = {} ---@type table<integer, dg.Buffer?>

---@return dg.View
local function view()
  return config.native() and require('dg.native') or require('dg.extmarks')
end

---@param buf integer
---@param b dg.Buffer
local function clear(buf, b)
  b.ghost = nil
  if vim.api.nvim_buf_is_valid(buf) then
    view().hide(buf)
  end
end

---@param items dg.Item[]
---@param typed string
---@param closer? string What a plugin put behind the cursor; items end in front of it.
---@return dg.Item[]
local function fitting(items, typed, closer)
  local found = {} ---@type dg.Item[]
  for _, item in ipairs(items) do
    local rest = vim.startswith(item.text, typed) and item.text:sub(#typed + 1) or ''
    if closer then
      rest = text.inside(rest, closer) or ''
    end
    if rest ~= '' then
      found[#found + 1] = {
        text = rest,
        command = item.command,
        given = item.given,
        passed = item.passed .. typed,
      }
    end
  end
  return found
end

---@param buf integer
---@param b dg.Buffer
local function draw(buf, b)
  local ghost = assert(b.ghost)
  view().show(buf, ghost)
  if view().is_shown(buf) then
    signals.shown(buf, b, ghost.items[ghost.index])
  end
end

--- Bring the suggestion in step with the cursor's line.
---@param buf integer
---@param ghost dg.Ghost
---@return boolean fits
local function follow(buf, ghost)
  local row, col = here.cursor()
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  if ghost.stale or row ~= ghost.row then
    return false
  end
  if tick == ghost.tick then
    return col == ghost.col
  end
  local line = vim.api.nvim_get_current_line()
  local typed, closer = text.typed(ghost.line, line, ghost.col, col)
  if not typed or typed == '' then
    return false
  end
  local shown = ghost.items[ghost.index]
  local items = fitting(ghost.items, typed, closer)
  if #items == 0 then
    return false
  end
  ghost.index = 1
  for index, item in ipairs(items) do
    if item.given == shown.given then
      ghost.index = index
    end
  end
  ghost.items, ghost.line, ghost.col, ghost.tick = items, line, col, tick
  return true
end

---@param buf integer
---@param items dg.Item[]
---@return dg.Ghost
local function ghost_here(buf, items)
  local row, col = here.cursor()
  return {
    items = items,
    index = 1,
    row = row,
    col = col,
    line = vim.api.nvim_get_current_line(),
    tick = vim.api.nvim_buf_get_changedtick(buf),
    stale = false,
  }
end

---@param buf integer
---@param b dg.Buffer
---@param items dg.Item[]
local function show(buf, b, items)
  if #items == 0 then
    clear(buf, b)
    return
  end
  b.ghost = ghost_here(buf, items)
  draw(buf, b)
end

---@param buf integer
---@param b dg.Buffer
---@param delay integer Milliseconds.
local function ask_soon(buf, b, delay)
  ask.cancel(b)
  b.timer:start(
    delay,
    0,
    vim.schedule_wrap(function()
      if not here.inserting() or vim.api.nvim_get_current_buf() ~= buf or b.ghost then
        return
      end
      if pause.is_paused(buf) or vim.fn.reg_executing() ~= '' then
        return
      end
      ask.send(buf, b, ask.AUTOMATIC, function(items)
        show(buf, b, items)
      end)
    end)
  )
end

--- The text changed or the cursor moved in insert mode.
---@param buf integer
local function moved(buf)
  local b = buffers[buf]
  if not b or vim.api.nvim_get_current_buf() ~= buf or not here.inserting() then
    return
  end
  local row, col = here.cursor()
  local stale = b.ghost ~= nil and b.ghost.stale
  local now = ('%d:%d:%d'):format(vim.api.nvim_buf_get_changedtick(buf), row, col)
  if now == b.seen and not stale then
    return
  end
  b.seen = now
  if b.ghost and follow(buf, b.ghost) then
    draw(buf, b)
    return
  end
  clear(buf, b)
  if config.options.automatic then
    ask_soon(buf, b, config.options.debounce_ms)
  else
    ask.cancel(b)
  end
end

---@param buf integer
local function left(buf)
  local b = buffers[buf]
  if b then
    b.seen = ''
    ask.cancel(b)
    clear(buf, b)
  end
end

--- Follow a buffer; called when the server is attached to it.
---@param buf integer
function M.attach(buf)
  M.detach(buf)
  local b = { ---@type dg.Buffer
    timer = assert(vim.uv.new_timer()),
    group = vim.api.nvim_create_augroup('dg.ghost.' .. buf, { clear = true }),
    seen = '',
  }
  buffers[buf] = b
  vim.api.nvim_create_autocmd({ 'InsertEnter', 'CursorMovedI', 'TextChangedI', 'TextChangedP' }, {
    group = b.group,
    buffer = buf,
    callback = function(event)
      if event.event == 'InsertEnter' then
        -- The mode changes only after this event.
        vim.schedule(function()
          moved(buf)
        end)
      else
        moved(buf)
      end
    end,
  })
  vim.api.nvim_create_autocmd('ModeChanged', {
    group = b.group,
    pattern = 'i*:*',
    callback = function(event)
      if event.buf == buf and not vim.startswith(vim.v.event.new_mode, 'i') then
        left(buf)
      end
    end,
  })
  vim.api.nvim_create_autocmd({ 'InsertLeave', 'BufLeave' }, {
    group = b.group,
    buffer = buf,
    callback = function()
      left(buf)
    end,
  })
  vim.api.nvim_buf_attach(buf, false, {
    on_lines = function(_, _, _, first, last, new_last)
      if buffers[buf] ~= b then
        return true
      end
      local ghost = b.ghost
      if ghost and (first ~= ghost.row or last ~= first + 1 or new_last ~= last) then
        ghost.stale = true
        vim.schedule(function()
          moved(buf)
        end)
      end
    end,
  })
  view().attach(buf)
  if vim.api.nvim_get_current_buf() == buf then
    moved(buf)
  end
end

---@param buf integer
function M.detach(buf)
  local b = buffers[buf]
  if not b then
    return
  end
  buffers[buf] = nil
  b.pending = nil
  b.timer:stop()
  b.timer:close()
  vim.api.nvim_del_augroup_by_id(b.group)
  clear(buf, b)
end

--- The server is gone, and with it all suggestions.
function M.forget_all()
  for _, buf in ipairs(vim.tbl_keys(buffers)) do
    M.detach(buf)
  end
end

--- The suggestion that is shown in the current buffer, in step with it.
---@return integer buf
---@return dg.Buffer? b
---@return dg.Ghost? ghost
local function shown()
  local buf = vim.api.nvim_get_current_buf()
  local b = buffers[buf]
  if not b or not b.ghost or not here.inserting() then
    return buf, b, nil
  end
  if not view().is_shown(buf) or not follow(buf, b.ghost) then
    return buf, b, nil
  end
  return buf, b, b.ghost
end

---@param buf integer
---@return boolean
function M.visible(buf)
  local current, _, ghost = shown()
  return current == buf and ghost ~= nil
end

---@param part 'all'|'word'|'line'
---@return boolean taken
function M.accept(part)
  local buf, b, ghost = shown()
  if not b or not ghost then
    return false
  end
  local item = ghost.items[ghost.index]
  local piece = item.text
  if part == 'word' then
    piece = text.first_word(item.text)
  elseif part == 'line' then
    piece = text.first_line(item.text)
  end
  ask.cancel(b)
  if piece == item.text then
    b.ghost = nil
    if not view().accept(buf) then
      view().hide(buf)
      here.insert(buf, ghost.row, ghost.col, piece)
      local client = client_of(buf)
      if client and item.command then
        client:exec_cmd(item.command, { bufnr = buf })
      end
    end
    return true
  end
  local index = 1
  local rest = fitting(ghost.items, piece)
  for i, other in ipairs(rest) do
    if other.text == item.text:sub(#piece + 1) then
      index = i
    end
  end
  b.ghost = nil
  here.insert(buf, ghost.row, ghost.col, piece)
  b.ghost = ghost_here(buf, rest)
  b.ghost.index = index
  b.seen = ('%d:%d:%d'):format(b.ghost.tick, b.ghost.row, b.ghost.col)
  draw(buf, b)
  signals.partly_taken(buf, item, piece)
  return true
end

--- Show another suggestion; when only one is known, the server is asked for more.
---@param step 1|-1
---@return boolean done
function M.cycle(step)
  local buf, b, ghost = shown()
  if not b or not ghost then
    return false
  end
  local function turn()
    ghost.index = (ghost.index - 1 + step) % #ghost.items + 1
    draw(buf, b)
  end
  if #ghost.items > 1 then
    turn()
    return true
  end
  ask.send(buf, b, ask.INVOKED, function(items)
    if b.ghost ~= ghost then
      return
    end
    for _, item in ipairs(items) do
      if item.text ~= ghost.items[1].text then
        table.insert(ghost.items, item)
      end
    end
    if #ghost.items > 1 then
      turn()
    end
  end)
  return true
end

---@param buf integer
---@return boolean done
function M.dismiss(buf)
  local b = buffers[buf]
  if not b then
    return false
  end
  local had = b.ghost ~= nil
  ask.cancel(b)
  clear(buf, b)
  return had
end

---@return boolean done
function M.trigger()
  local buf = vim.api.nvim_get_current_buf()
  local b = buffers[buf]
  if not b or not here.inserting() then
    return false
  end
  return ask.send(buf, b, ask.INVOKED, function(items)
    show(buf, b, items)
  end)
end

--- Draw again what is shown; Neovim's part can only now do so.
---@param buf integer
function M.redraw(buf)
  local b = buffers[buf]
  if b and b.ghost then
    draw(buf, b)
  end
end

return M

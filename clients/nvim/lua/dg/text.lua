--- Pure functions on the text of suggestions and edits.

local M = {}

--- A server's text as the buffer holds it: line breaks become "\n" where the file format has others.
---@param text string
---@param fileformat string 'unix', 'dos' or 'mac'
---@return string
function M.as_buffer(text, fileformat)
  if fileformat == 'unix' then
    return text
  end
  return (text:gsub('\r\n?', '\n'))
end

--- The first word of a text with the white space before it; at least one character.
---@param text string
---@return string
function M.first_word(text)
  local blank = text:match('^%s*') --[[@as string]]
  local rest = text:sub(#blank + 1)
  if rest == '' then
    return text
  end
  -- Bytes from 0x80 on belong to letters of other scripts, so they do not end a word.
  local word = rest:match('^[%w_\128-\255]+') or rest:match('^[^%w_%s\128-\255]+')
  return blank .. word
end

--- The length of a server's text in UTF-16 units, as far as the buffer has it.
---@param passed string Its beginning with the buffer's line breaks.
---@param given any The whole text as the server sent it.
---@return integer
function M.utf16_length(passed, given)
  local _, breaks = passed:gsub('\n', '')
  local doubled = type(given) == 'string' and given:find('\r\n', 1, true) and breaks or 0
  return vim.str_utfindex(passed, 'utf-16') + doubled
end

--- A text up to the end of its first line that says something.
---@param text string
---@return string
function M.first_line(text)
  local breaks = text:match('^\n*') --[[@as string]]
  return breaks .. text:sub(#breaks + 1):match('^[^\n]*')
end

local PAIRS = { ['('] = ')', ['['] = ']', ['{'] = '}', ['"'] = '"', ["'"] = "'", ['`'] = '`' }

--- What was typed at `col` of a line, when nothing else about the line changed; and the bracket or
--- quote behind the cursor, when a plugin closed by itself what was typed.
---@param old string
---@param new string
---@param col integer Bytes before the place.
---@param cursor integer Bytes before the cursor in `new`.
---@return string? typed
---@return string? closer
function M.typed(old, new, col, cursor)
  local more = #new - #old - (cursor - col)
  if cursor < col or more < 0 or more > 1 or new:sub(1, col) ~= old:sub(1, col) then
    return nil
  end
  local typed, closer = new:sub(col + 1, cursor), new:sub(cursor + 1, cursor + more)
  if new:sub(cursor + more + 1) ~= old:sub(col + 1) then
    return nil
  elseif more == 0 then
    return typed, nil
  end
  if PAIRS[typed:sub(-1)] == closer then
    return typed, closer
  end
end

--- What of a text stands in front of the bracket or quote that closes what was opened before it.
---@param text string
---@param closer string
---@return string? inside nil when the text does not close it
function M.inside(text, closer)
  local depth = 0
  local quote = PAIRS[closer] and closer or nil ---@type string?
  local at = 1
  while at <= #text do
    local character = text:sub(at, at)
    if quote then
      if character == '\\' then
        at = at + 1
      elseif character == quote and quote == closer then
        return text:sub(1, at - 1)
      elseif character == quote then
        quote = nil
      end
    elseif PAIRS[character] == character then
      quote = character
    elseif PAIRS[character] == closer then
      depth = depth + 1
    elseif character == closer and depth > 0 then
      depth = depth - 1
    elseif character == closer then
      return text:sub(1, at - 1)
    end
    at = at + 1
  end
end

--- The same text with tabs as the blanks that they would be drawn as.
---@param text string
---@param column integer Display column that the text begins at.
---@param tabstop integer
---@return string
function M.without_tabs(text, column, tabstop)
  local parts = {} ---@type string[]
  for piece, tab in text:gmatch('([^\t]*)(\t?)') do
    column = column + vim.api.nvim_strwidth(piece)
    parts[#parts + 1] = piece
    if tab ~= '' then
      local blanks = tabstop - column % tabstop
      column = column + blanks
      parts[#parts + 1] = (' '):rep(blanks)
    end
  end
  return table.concat(parts)
end

---@param lines string[]
---@param position lsp.Position
---@param encoding string
---@return integer row From 0.
---@return integer col Bytes.
local function place(lines, position, encoding)
  local row = math.min(position.line, #lines)
  local line = lines[row + 1] or ''
  return row, vim.str_byteindex(line, encoding, position.character, false)
end

--- Lines with edits of the server applied to them.
---@param lines string[] The whole buffer.
---@param edits lsp.TextEdit[]
---@param encoding string
---@param fileformat string
---@return string[]
function M.edited(lines, edits, encoding, fileformat)
  local sorted = vim.deepcopy(edits)
  table.sort(sorted, function(a, b)
    local p, q = a.range.start, b.range.start
    return p.line > q.line or (p.line == q.line and p.character > q.character)
  end)
  local result = vim.list_slice(lines, 1, #lines)
  for _, edit in ipairs(sorted) do
    local row, col = place(result, edit.range.start, encoding)
    local end_row, end_col = place(result, edit.range['end'], encoding)
    local head = (result[row + 1] or ''):sub(1, col)
    local tail = (result[end_row + 1] or ''):sub(end_col + 1)
    local text = head .. M.as_buffer(edit.newText, fileformat) .. tail
    local after = vim.list_slice(result, end_row + 2, #result)
    result = vim.list_slice(result, 1, row)
    vim.list_extend(result, vim.split(text, '\n', { plain = true }))
    vim.list_extend(result, after)
  end
  return result
end

return M

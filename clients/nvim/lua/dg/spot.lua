--- Stretches of a buffer that keep their text while the rest changes, and words around a place.

local M = {}

local namespace = vim.api.nvim_create_namespace('dg.spot')

---@class dg.Spot A stretch of text.
---@field buf integer
---@field mark integer
---@field text string What stands there.
---@field whole? 'words'|'line' What it is; with more of it at an end it is another text.

-- Bytes from 0x80 on belong to letters of other scripts.
local WORD = '[%w_\128-\255]'

---@param line string
---@param col integer
---@return integer from Bytes, where the word begins that ends at `col`.
function M.word_start(line, col)
  return col - #(
      line:sub(1, col):match(WORD .. '*$') --[[@as string]]
    )
end

---@param line string
---@param col integer
---@return integer to Bytes, where the word ends that begins at `col`.
function M.word_end(line, col)
  return col + #(
      line:sub(col + 1):match('^' .. WORD .. '*') --[[@as string]]
    )
end

---@param buf integer
---@param row integer
---@return string
local function line_at(buf, row)
  return vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ''
end

---@param spot dg.Spot
---@return integer? row From 0; nil when it is gone.
---@return integer? col Bytes.
---@return integer? end_row
---@return integer? end_col
function M.range(spot)
  local at = vim.api.nvim_buf_get_extmark_by_id(spot.buf, namespace, spot.mark, { details = true })
  if #at == 0 then
    return nil
  end
  return at[1], at[2], at[3].end_row, at[3].end_col
end

---@param spot dg.Spot
---@return string?
local function text_of(spot)
  local row, col, end_row, end_col = M.range(spot)
  if not row then
    return nil
  end
  local ok, lines = pcall(vim.api.nvim_buf_get_text, spot.buf, row, col, end_row, end_col, {})
  return ok and table.concat(lines, '\n') or nil
end

---@param buf integer
---@param range [integer, integer, integer, integer] Row and column of its start and its end.
---@param kind 'words'|'line'|'growing' The last one grows with what is typed at its ends.
---@return dg.Spot
function M.keep(buf, range, kind)
  local grows = kind == 'growing'
  local mark = vim.api.nvim_buf_set_extmark(buf, namespace, range[1], range[2], {
    end_row = range[3],
    end_col = range[4],
    right_gravity = not grows,
    end_right_gravity = grows,
    strict = false,
  })
  local spot = { buf = buf, mark = mark, text = '', whole = not grows and kind or nil } ---@type dg.Spot
  spot.text = text_of(spot) or ''
  return spot
end

--- The same place with the words at its ends whole.
---@param spot dg.Spot
---@return dg.Spot?
function M.whole_words(spot)
  local row, col, end_row, end_col = M.range(spot)
  if not row then
    return nil
  end
  col = M.word_start(line_at(spot.buf, row), col --[[@as integer]])
  end_col = M.word_end(line_at(spot.buf, end_row --[[@as integer]]), end_col --[[@as integer]])
  return M.keep(spot.buf, { row, col, end_row, end_col }, 'words')
end

--- Whether nothing about it changed.
---@param spot dg.Spot
---@return boolean
function M.is_kept(spot)
  if text_of(spot) ~= spot.text then
    return false
  end
  local row, col, end_row, end_col = M.range(spot)
  local first, last = line_at(spot.buf, row), line_at(spot.buf, end_row --[[@as integer]])
  if spot.whole == 'line' then
    return first == spot.text
  end
  return M.word_start(first, col) == col and M.word_end(last, end_col) == end_col
end

---@param spot dg.Spot?
function M.drop(spot)
  if spot and vim.api.nvim_buf_is_valid(spot.buf) then
    vim.api.nvim_buf_del_extmark(spot.buf, namespace, spot.mark)
  end
end

return M

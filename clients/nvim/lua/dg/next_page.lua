--- What was edited in a buffer, and what is proposed for it.

local spots = require('dg.spot')

---@class dg.Proposal An edit of one line.
---@field line dg.Spot Its whole line.
---@field cause dg.Spot What was edited before it was proposed.
---@field first integer Bytes of the line before what it replaces.
---@field last integer
---@field text string
---@field command lsp.Command? By which the server knows it.
---@field told boolean Whether the server was told that it is shown.

---@class dg.Question
---@field client vim.lsp.Client
---@field id integer?
---@field tick integer The buffer's change that it is about.
---@field cause dg.Spot
---@field diagnostics lsp.Diagnostic[] What it told.

---@class dg.Page What was edited in a buffer, and what is proposed for it.
---@field buf integer
---@field group integer
---@field timer uv.uv_timer_t
---@field cause dg.Spot? What was edited since the last question.
---@field changes integer Not looked at yet.
---@field asked dg.Question?
---@field unanswered dg.Question? The last one, as long as it brought nothing.
---@field proposals dg.Proposal[] The last one is shown.
---@field taking integer? The change by which one was made, until what follows is known.
---@field undo { last: integer, now: integer } Changes as Neovim counts them.
---@field shown dg.NextShown

local MOST_KEPT = 8 --- The oldest is forgotten.

local M = {}

---@param proposal dg.Proposal
local function drop(proposal)
  spots.drop(proposal.line)
  spots.drop(proposal.cause)
end

--- Drop the proposals that are not kept.
---@param page dg.Page
---@param keeps fun(proposal: dg.Proposal): boolean
function M.filter(page, keeps)
  page.proposals = vim.tbl_filter(function(proposal)
    local kept = keeps(proposal)
    if not kept then
      drop(proposal)
    end
    return kept
  end, page.proposals)
end

---@param proposal dg.Proposal
---@return string
local function change_of(proposal)
  local old = proposal.line.text:sub(proposal.first + 1, proposal.last)
  return ('%d:%s%s'):format(#old, old, proposal.text)
end

--- Keep one more. It is shown, unless it makes the same change as an older one that still stands:
--- then it waits its turn, for the older one is the nearer.
---@param page dg.Page
---@param proposal dg.Proposal
function M.add(page, proposal)
  local row = spots.range(proposal.line)
  M.filter(page, function(other)
    return spots.range(other.line) ~= row
  end)
  local turn = #page.proposals + 1
  for place = #page.proposals, 1, -1 do
    if change_of(page.proposals[place]) == change_of(proposal) then
      turn = place
    end
  end
  table.insert(page.proposals, turn, proposal)
  if #page.proposals > MOST_KEPT then
    drop(table.remove(page.proposals, 1))
  end
end

--- The number of the last change of a buffer; an undo makes it smaller.
---@param buf integer
---@return integer
function M.change_number(buf)
  if vim.api.nvim_get_current_buf() == buf then
    return vim.fn.changenr()
  end
  return vim.api.nvim_buf_call(buf, vim.fn.changenr)
end

--- Whether the last change was an undo or a redo: to a state that was there before.
---@param page dg.Page
---@return boolean
function M.is_taken_back(page)
  local before, now = page.undo, M.change_number(page.buf)
  page.undo = { last = math.max(before.last, now), now = now }
  return now < before.now or (now > before.now and now <= before.last)
end

--- What was edited last, with changes that go on with it as one.
---@param page dg.Page
---@param range [integer, integer, integer, integer]
function M.note_cause(page, range)
  local before = page.cause
  local row, col, end_row, end_col
  if before then
    row, col, end_row, end_col = spots.range(before)
  end
  local function is_behind(a_row, a_col, b_row, b_col)
    return a_row > b_row or (a_row == b_row and a_col >= b_col)
  end
  -- It has grown by what touched it.
  local goes_on = row
    and is_behind(range[1], range[2], row, col)
    and is_behind(end_row, end_col, range[3], range[4])
  if not goes_on then
    spots.drop(before)
    page.cause = spots.keep(page.buf, range, 'growing')
  end
end

return M

--- Keys in insert mode: ours while a suggestion is shown, and otherwise what they were before.

local M = {}

local MODE = 'i'
local set = {} ---@type table<string, table> What was mapped before, by key.

---@type table<string, fun(): boolean>
local ACTIONS = {
  accept = function()
    return require('dg').accept()
  end,
  accept_word = function()
    return require('dg').accept_word()
  end,
  accept_line = function()
    return require('dg').accept_line()
  end,
  next = function()
    return require('dg').next()
  end,
  previous = function()
    return require('dg').previous()
  end,
  dismiss = function()
    return require('dg').dismiss()
  end,
  trigger = function()
    return require('dg').trigger()
  end,
  next_edit = function()
    return require('dg').next_edit()
  end,
}

---@param keys string
---@param remap boolean
local function feed(keys, remap)
  -- Before what is typed already, so that the order stays.
  vim.api.nvim_feedkeys(keys, remap and 'im' or 'in', false)
end

---@param keys string
---@return string
local function code(keys)
  return vim.api.nvim_replace_termcodes(keys, true, true, true)
end

--- Do what the key would have done without us.
---@param lhs string
---@param before table As of maparg(); empty when nothing was mapped.
local function fall_through(lhs, before)
  local remap = before.noremap == 0
  if before.callback then
    local keys = before.callback()
    if before.expr == 1 and type(keys) == 'string' then
      feed(before.replace_keycodes == 1 and code(keys) or keys, remap)
    end
  elseif before.rhs and before.rhs ~= '' then
    local rhs = before.rhs:gsub('<SID>', ('<SNR>%d_'):format(before.sid or 0))
    if before.expr == 1 then
      local keys = vim.api.nvim_eval(rhs)
      feed(before.replace_keycodes == 1 and code(keys) or keys, remap)
    else
      feed(code(rhs), remap)
    end
  else
    feed(code(lhs), false)
  end
end

---@param name string
---@param lhs string
local function map(name, lhs)
  local before = vim.fn.maparg(lhs, MODE, false, true)
  if before.buffer == 1 then
    before = {} -- it comes first anyway
  end
  set[lhs] = before
  vim.keymap.set(MODE, lhs, function()
    if require('dg.menu').selected() or not ACTIONS[name]() then
      fall_through(lhs, before)
    end
  end, { desc = 'dg: ' .. name:gsub('_', ' ') })
end

--- Map the keys, in place of those that were mapped by the last call.
---@param keymaps dg.Keymaps|false
function M.set(keymaps)
  for lhs, before in pairs(set) do
    pcall(vim.keymap.del, MODE, lhs)
    if before.lhs then
      vim.fn.mapset(MODE, false, before)
    end
  end
  set = {}
  for name, action in pairs(ACTIONS) do
    local plug = ('<Plug>(dg-%s)'):format((name:gsub('_', '-')))
    vim.keymap.set(MODE, plug, function()
      action()
    end, { desc = 'dg: ' .. name:gsub('_', ' ') })
    local lhs = keymaps and keymaps[name]
    if lhs then
      map(name, lhs)
    end
  end
end

return M

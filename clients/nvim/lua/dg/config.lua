--- What users may set, and one sentence for each option that cannot be used.

---@class dg.Keymaps
---@field accept string|false Take the whole suggestion.
---@field accept_word string|false Take its next word.
---@field accept_line string|false Take it up to the end of its line.
---@field next string|false Show the next suggestion; asks for more when there is only one.
---@field previous string|false Show the previous suggestion.
---@field dismiss string|false Hide the suggestion.
---@field trigger string|false Ask for suggestions now.
---@field next_edit string|false Go to the next edit; there, make it (insert and normal mode).
---@field next_edit_dismiss string|false Send the next edit away (normal mode).
---@field edit_accept string|false Apply the edit under review.
---@field edit_discard string|false Drop the edit under review.
---@field edit_retry string|false Ask again with another instruction.

---@class dg.Options
---@field cmd string[] The server and its arguments.
---@field settings table<string, any> Settings of the server.
---@field attach fun(buf: integer): boolean Whether a buffer gets suggestions.
---@field root_markers string[] Files or folders that stand at a project's root.
---@field ghost 'auto'|'native'|'own' Who draws suggestions; "auto" is native where Neovim can.
---@field automatic boolean Suggest while typing; otherwise only when asked.
---@field debounce_ms integer How long typing must pause before the server is asked.
---@field restarts integer How often in a minute a server that died is started again.
---@field keymaps dg.Keymaps|false

local M = {}

---@type dg.Options
M.defaults = {
  cmd = { 'dg-lsp', '--stdio' },
  settings = {},
  attach = function()
    return true
  end,
  root_markers = { '.git', 'pyproject.toml', 'package.json', 'Cargo.toml', 'go.mod' },
  ghost = 'auto',
  automatic = true,
  debounce_ms = 50,
  restarts = 3,
  keymaps = {
    accept = '<Tab>',
    accept_word = '<M-Right>',
    accept_line = '<M-C-Right>',
    next = '<M-]>',
    previous = '<M-[>',
    dismiss = '<C-]>',
    trigger = '<M-Bslash>',
    next_edit = '<M-n>',
    next_edit_dismiss = '<Esc>',
    edit_accept = '<CR>',
    edit_discard = '<Esc>',
    edit_retry = '<M-r>',
  },
}

---@type dg.Options
M.options = vim.deepcopy(M.defaults)

local TYPES = {
  cmd = 'table',
  settings = 'table',
  attach = 'function',
  root_markers = 'table',
  ghost = 'string',
  automatic = 'boolean',
  debounce_ms = 'number',
  restarts = 'number',
  keymaps = 'table',
}
local GHOSTS = { auto = true, native = true, own = true }

---@param value any
---@return boolean
local function is_key(value)
  return value == false or (type(value) == 'string' and value ~= '')
end

---@param key string
---@param value any
---@return string? problem
local function problem_with(key, value)
  local expected = TYPES[key]
  if not expected then
    local known = vim.tbl_keys(TYPES)
    table.sort(known)
    return ('There is no option "%s"; known are %s.'):format(key, table.concat(known, ', '))
  end
  if key == 'keymaps' and value == false then
    return nil
  end
  if type(value) ~= expected then
    return ('The option "%s" takes a %s, not a %s.'):format(key, expected, type(value))
  end
  if key == 'ghost' and not GHOSTS[value] then
    return 'The option "ghost" takes "auto", "native" or "own".'
  end
  if key == 'cmd' and type(value[1]) ~= 'string' then
    return 'The option "cmd" takes a list: the program, then its arguments.'
  end
  if key == 'debounce_ms' and value < 0 then
    return 'The option "debounce_ms" takes 0 or more milliseconds.'
  end
  if key == 'keymaps' then
    for name, lhs in pairs(value) do
      if M.defaults.keymaps[name] == nil or not is_key(lhs) then
        return ('The option "keymaps.%s" takes a known name and a key or false.'):format(name)
      end
    end
  end
end

--- Put options in force; each that cannot be used keeps its default.
---@param given? table
---@return string[] problems
function M.set(given)
  local problems = {} ---@type string[]
  local good = {} ---@type table<string, any>
  for key, value in pairs(given or {}) do
    local problem = problem_with(key, value)
    if problem then
      table.insert(problems, problem)
    else
      good[key] = value
    end
  end
  M.options = vim.tbl_deep_extend('force', vim.deepcopy(M.defaults), good)
  -- Lists are replaced, not merged position by position.
  M.options.cmd = good.cmd or M.options.cmd
  M.options.root_markers = good.root_markers or M.options.root_markers
  return problems
end

--- Whether Neovim's own inline completion draws the suggestions.
---@return boolean
function M.native()
  local can = vim.lsp.inline_completion ~= nil
  return can and M.options.ghost ~= 'own'
end

return M

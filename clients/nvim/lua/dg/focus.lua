--- Whether the user looks at this Neovim, as far as its terminal or window tells: windows share an
--- engine, and the one that is looked at goes first.

local M = {}

local METHOD = 'dg/didChangeFocus'

local reported = false -- Whether anything tells of the focus here; many terminals do not.
local current = vim.NIL ---@type boolean|vim.NIL What servers were told last.

--- Tell a server that has just started, unless there is nothing to say.
---@param client vim.lsp.Client
function M.begin(client)
  if current ~= vim.NIL then
    client:notify(METHOD, { focused = current })
  end
end

---@param focused boolean|vim.NIL
local function set(focused)
  if focused == current then
    return
  end
  current = focused
  for _, client in ipairs(vim.lsp.get_clients({ name = require('dg.client').NAME })) do
    client:notify(METHOD, { focused = focused })
  end
end

--- Follow the focus from now on.
---@param group integer
function M.enable(group)
  local happens = {
    FocusGained = function()
      reported = true
      set(true)
    end,
    FocusLost = function()
      reported = true
      set(false)
    end,
    VimSuspend = function()
      set(false)
    end,
    -- It is looked at, but where nothing tells of the focus nobody would hear when that is over.
    VimResume = function()
      set(reported or vim.NIL)
    end,
  }
  for event, happened in pairs(happens) do
    vim.api.nvim_create_autocmd(event, { group = group, callback = happened })
  end
end

return M

--- What the model would be shown at the cursor, in a split.

local config = require('dg.config')

local M = {}

--- The command line of a command of the server's program.
---@param ... string
---@return string[]
function M.command_line(...)
  local command = vim.tbl_filter(function(argument)
    return argument ~= '--stdio'
  end, config.options.cmd)
  vim.list_extend(command, { ... })
  return command
end

--- A file that holds what the buffer holds, and whether it is only for us.
---@param buf integer
---@return string path
---@return boolean temporary
local function file_of(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  if not vim.bo[buf].modified and vim.fn.filereadable(name) == 1 then
    return name, false
  end
  local folder = vim.fn.tempname()
  vim.fn.mkdir(folder, 'p')
  local path = vim.fs.joinpath(folder, name == '' and 'unnamed' or vim.fs.basename(name))
  vim.api.nvim_buf_call(buf, function()
    local ending = ({ dos = '\r\n', mac = '\r' })[vim.bo.fileformat] or '\n'
    local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
    local file = assert(io.open(path, 'wb'))
    file:write(table.concat(lines, ending), vim.bo.endofline and ending or '')
    file:close()
  end)
  return path, true
end

---@param lines string[]
local function show(lines)
  vim.cmd('botright new')
  local buf = vim.api.nvim_get_current_buf()
  vim.bo[buf].buftype = 'nofile'
  vim.bo[buf].bufhidden = 'wipe'
  vim.bo[buf].swapfile = false
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buf, desc = 'dg: close' })
end

--- Run `dg-lsp explain` for the cursor.
function M.run()
  local buf = vim.api.nvim_get_current_buf()
  local at = vim.api.nvim_win_get_cursor(0)
  local column = vim.str_utfindex(vim.api.nvim_get_current_line(), 'utf-32', at[2], false) + 1
  local path, temporary = file_of(buf)
  local command = M.command_line('explain')
  local model = config.options.settings.model
  if model then
    vim.list_extend(command, { '--model', model })
  end
  table.insert(command, ('%s:%d:%d'):format(path, at[1], column))
  local ok, problem = pcall(vim.system, command, { text = true }, function(ran)
    vim.schedule(function()
      if temporary then
        vim.fn.delete(vim.fs.dirname(path), 'rf')
      end
      if ran.code == 0 then
        show(vim.split(vim.trim(ran.stdout), '\n', { plain = true }))
      else
        local why = vim.trim(ran.stderr ~= '' and ran.stderr or ran.stdout)
        vim.notify('dg: ' .. why, vim.log.levels.WARN)
      end
    end)
  end)
  if not ok then
    vim.notify('dg: ' .. tostring(problem), vim.log.levels.ERROR)
  end
end

return M

--- Whether a completion menu has an entry selected: then the keys are the menu's, not ours.

local M = {}

---@return boolean
function M.selected()
  if vim.fn.pumvisible() == 1 and vim.fn.complete_info({ 'selected' }).selected >= 0 then
    return true
  end
  -- Only asked when they are loaded; nothing is loaded for their sake.
  local blink = package.loaded['blink.cmp']
  if blink and blink.is_menu_visible and blink.is_menu_visible() then
    return not blink.get_selected_item or blink.get_selected_item() ~= nil
  end
  local cmp = package.loaded['cmp']
  if cmp and cmp.visible and cmp.visible() then
    return not cmp.get_selected_entry or cmp.get_selected_entry() ~= nil
  end
  return false
end

return M

#!/usr/bin/env bash
# Sets up the editors (cached), and runs their tests: those in a terminal beside those in VS Code,
# for both wait most of the time.
#
#   run.sh [PYTHON]     PYTHON is the one that runs the tests
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${1:-.venv/bin/python}
cd "$here/../.."

npm ci --silent --prefix "$here/stylua"
node "$here/stylua/check.mjs"
"$here/setup_nvim.sh" "$python"
"$here/setup_terminal.sh" "$python"
DG_VSCODE=$("$here/setup_vscode.sh" ${DG_VSCODE:+"$DG_VSCODE"})
export DG_VSCODE

log=$(mktemp)
terminals=
trap 'rm -f "$log"; if [[ $terminals ]]; then kill "$terminals" 2>/dev/null || true; fi' EXIT
"$python" -m pytest tests/editors >"$log" 2>&1 &
terminals=$!
status=0
"$here/vscode/run.sh" || status=$?
wait "$terminals" || status=$?
cat "$log"
exit "$status"

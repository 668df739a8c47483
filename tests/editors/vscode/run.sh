#!/usr/bin/env bash
# Runs the VS Code tests: sets up the editor (cached), packages the extension, drives both.
#
#   run.sh [TEST_FILE...]                 without a file: all, after the extension's own checks and tests
#   run.sh --run SCRIPT [ARGUMENT...]     another script that drives them
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)

DG_VSCODE=$("$here/../setup_vscode.sh" ${DG_VSCODE:+"$DG_VSCODE"})
export DG_VSCODE
export PATH="$DG_VSCODE/node/bin:$PATH"

cd "$root/clients/vscode"
if [[ ! -f node_modules/.package-lock.json || package-lock.json -nt node_modules/.package-lock.json ]]; then
  npm ci --loglevel=error >&2
fi
npm run --silent package >&2

cd "$root"
rm -rf "$here/shots"
if [[ ${1-} == --run ]]; then
  shift
  exec node "$@"
fi
if ! (($#)); then
  (cd clients/vscode && npm run --silent check && npm run --silent test) >&2
  set -- "$here"/*.test.mjs
fi
# Installed once, as people do it; each window has a copy.
installed=$(mktemp -d)
trap 'rm -rf "$installed"' EXIT
node "$DG_VSCODE/editor/node_modules/code-server/out/node/entry.js" --config "$installed/config.yaml" \
  --user-data-dir "$installed/data" --extensions-dir "$installed/extensions" \
  --install-extension "$root/clients/vscode/dist/dg-lsp.vsix" >"$installed/log" 2>&1 ||
  { cat "$installed/log" >&2; exit 1; }
rm -f "$installed/extensions/extensions.json"
export DG_VSCODE_EXTENSIONS=$installed/extensions
# One after another: each file has an editor and a browser of its own.
node --test --test-concurrency=1 --test-timeout=180000 "$@"

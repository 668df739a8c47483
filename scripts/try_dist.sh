#!/usr/bin/env bash
# Install what `make dist` made into a fresh environment in an empty home, and fill a hole with it in
# the terminal and over --stdio. Each stage is printed with its seconds; the first that fails ends it.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
wheel=$(ls "$root"/dist/dg_lsp-*.whl)
vsix=$(ls "$root"/dist/dg-lsp-*.vsix)
torch=$(grep -o '^torch==[^ ]*' "$root/requirements/torch.txt")

HOME=$(mktemp -d)
fresh=$HOME/venv
export HOME XDG_RUNTIME_DIR=$HOME/run
unset PYTHONPATH VIRTUAL_ENV XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME DG_LSP_MODEL
mkdir -m 700 "$XDG_RUNTIME_DIR"
# The first request waits for the model to load, which a busy machine does slowly.
mkdir -p "$HOME/.config/dg-lsp"
echo "invokedDeadlineMs = 60000" >"$HOME/.config/dg-lsp/config.toml"
leave() {
    "$fresh/bin/dg-lsp" serve --stop >/dev/null 2>&1 || true
    rm -rf "$HOME"
}
trap leave EXIT
# Not in the checkout, so that nothing of it is found by chance.
cd "$HOME"

stage() {
    local name=$1 from=$EPOCHREALTIME
    shift
    "$@"
    awk -v name="$name" -v from="$from" -v to="$EPOCHREALTIME" \
        'BEGIN { printf "%6.1f s  %s\n", to - from, name }'
}
pip() { "$fresh/bin/python" -m pip --disable-pip-version-check -qq "$@"; }
version() { [[ $("$fresh/bin/dg-lsp" --version) == "dg-lsp $(basename "$wheel" | cut -d- -f2)" ]]; }
inside() { "$fresh/bin/python" -c \
    'import sys, dg_lsp, dg_engine, dg_kernels as k; sys.exit(not k.__file__.startswith(sys.prefix))'; }
terminal() {
    "$fresh/bin/dg-lsp" complete "$HOME/place.py:2:12" --json >"$HOME/terminal.json"
    "$fresh/bin/python" -c 'import json, sys; print("          " + repr(json.load(sys.stdin)["insert"]))' \
        <"$HOME/terminal.json"
}
client() {
    local filled
    filled=$("$fresh/bin/python" "$HOME/plain_client.py" "$HOME/place.py" 2 12)
    [[ -n $filled ]] || { echo "No suggestion came over --stdio." >&2; return 1; }
    echo "          $filled"
}
extension() {
    "$fresh/bin/python" - "$vsix" <<'PY'
import json, pathlib, sys, zipfile

with zipfile.ZipFile(sys.argv[1]) as files:
    manifest = json.loads(files.read("extension/package.json"))
    names = set(files.namelist())
assert f"dg-lsp-{manifest['version']}.vsix" == pathlib.Path(sys.argv[1]).name
assert f"extension/{manifest['main'].removeprefix('./')}" in names, manifest["main"]
PY
}

printf 'def mean(values):\n    return \n' >place.py
cp "$root/scripts/plain_client.py" plain_client.py
stage "python -m venv" "$root/.venv/bin/python" -m venv "$fresh"
stage "pip install $torch" pip install "$torch"
stage "pip install $(basename "$wheel")" pip install "$wheel"
stage "dg-lsp --version" version
stage "server, engine and kernels come from the wheel" inside
stage "dg-lsp model verify" "$fresh/bin/dg-lsp" model verify
stage "a hole in the terminal, engine started for it" terminal
stage "a hole over dg-lsp --stdio" client
stage "$(basename "$vsix") holds its version and its program" extension

#!/usr/bin/env bash
# Build the wheel and the VS Code extension into dist/.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v npm >/dev/null || { echo "The extension needs Node 20 or newer with npm; install it." >&2; exit 2; }
version=$(.venv/bin/python -c \
    'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["project"]["version"])')

mkdir -p dist
rm -f dist/dg_lsp-*.whl dist/dg-lsp-*.vsix
scripts/wheel.sh dist

cd clients/vscode
if [[ ! -f node_modules/.package-lock.json || package-lock.json -nt node_modules/.package-lock.json ]]; then
    npm ci --loglevel=error >&2
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
npm run --silent package >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
cd ../..
cp clients/vscode/dist/dg-lsp.vsix "dist/dg-lsp-$version.vsix"
ls -l dist/*"$version"*

#!/usr/bin/env bash
# Build the wheel (server, engine, kernels, dg-tiny) into a folder: `scripts/wheel.sh FOLDER`.
# The same sources give the same wheel, byte for byte.
set -euo pipefail
to=$(realpath "${1:?the folder for the wheel}")
cd "$(dirname "$0")/.."
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}
export SOURCE_DATE_EPOCH

# In a copy, so that nothing which an older build left gets in, and nothing is left here. What builds
# it is in the lock: nothing is fetched.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/source"
cp -r pyproject.toml README.md LICENSE server engine kernels models "$work/source"
.venv/bin/python -m build --wheel --no-isolation --outdir "$to" "$work/source" >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; exit 1; }

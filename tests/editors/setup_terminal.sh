#!/usr/bin/env bash
# Installs what the tests of editors in a terminal drive: Emacs 30 with lsp-mode, Helix 25, and
# pyte, which reads their screen. Everything lies in one cache folder; a second run does nothing.
#
#   tests/editors/setup_terminal.sh [PYTHON]     PYTHON is the one that runs the tests
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${1:-$here/../../.venv/bin/python}
cache=${DG_LSP_EDITORS:-${XDG_CACHE_HOME:-$HOME/.cache}/dg-lsp-editors}
terminal=$cache/terminal
wanted="debian=forky emacs-nox elpa-lsp-mode hx pyte==0.8.2 3"

if [ "$(cat "$terminal/ready" 2>/dev/null)" = "$wanted" ]; then
  exit 0
fi
rm -rf "$terminal"
mkdir -p "$terminal"

"$python" -m pip --disable-pip-version-check -qq install --target "$terminal/python" pyte==0.8.2

# Emacs looks for its own files where Debian puts them, so it is told where they are.
"$here/unpack_debian.sh" "$python" "$terminal/emacs-root" usr/bin/emacs-nox emacs-nox elpa-lsp-mode
usr=$terminal/emacs-root/usr
share=$(dirname "$usr"/share/emacs/*/lisp)
dump=$(echo "$usr/libexec/emacs/$(basename "$share")"/*/*.pdmp)
packages=$(find "$usr/share/emacs/site-lisp/elpa-src" -mindepth 1 -maxdepth 1 -type d | sort)
cat >"$terminal/emacs" <<RUN
#!/bin/sh
export EMACSDATA='$share/etc' EMACSDOC='$share/etc' EMACSPATH='$(dirname "$dump")'
export EMACSLOADPATH='$(echo "$packages" "$(find "$share/lisp" -type d)" | tr -s ' \n' ':')'
# What is compiled while it runs would be compiled by an Emacs that does not find its files.
exec '$usr/bin/emacs-nox' --dump-file '$dump' \\
  --eval '(setq native-comp-enable-subr-trampolines nil native-comp-jit-compilation nil)' \\
  --eval "(advice-add 'native--compile-async :override #'ignore)" "\$@"
RUN
chmod +x "$terminal/emacs"
# What a package manager does: the files that say what is loaded when, and compiled ones.
for package in $packages; do
  "$terminal/emacs" --batch --eval "(loaddefs-generate \"$package\" \"$package/autoloads.el\")" \
    --eval "(byte-recompile-directory \"$package\" 0)" >/dev/null 2>&1
done

"$here/unpack_debian.sh" "$python" "$terminal/helix-root" usr/bin/hx hx
runtime=$(find "$terminal/helix-root" -type d -name themes -printf '%h\n' -quit)
cat >"$terminal/hx" <<RUN
#!/bin/sh
export HELIX_RUNTIME='$runtime'
exec '$terminal/helix-root/usr/bin/hx' "\$@"
RUN
chmod +x "$terminal/hx"

require() {
  case $2 in
    "$1"*) echo "$2" ;;
    *) echo "It does not run: $2" >&2; exit 1 ;;
  esac
}
load="(progn (require 'lsp-inline-completion) (princ (concat \"Emacs \" emacs-version)))"
require "Emacs 30." "$("$terminal/emacs" --batch --eval "$load" 2>&1 | tail -1)"
require "helix 25." "$("$terminal/hx" --version)"
echo "$wanted" >"$terminal/ready"

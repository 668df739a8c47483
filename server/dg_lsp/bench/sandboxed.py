"""The inside of the sandbox: takes its own rights away, then runs `program.py`.

Run as a script by dg_lsp.bench.sandbox: FOLDER CODE CPU_SECONDS MEMORY FILE_BYTES OPEN_FILES.
Exits with CODE when the program reaches its end, and with 1 otherwise.
"""

from __future__ import annotations

import os
import resource
import sys
from typing import NoReturn

_NOBODY = 65534
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_MAY_OPEN_TO_WRITE = 16
_REFUSED = (
    "ctypes.", "fcntl.", "ftplib.", "glob.", "http.", "msvcrt.", "os.", "pty.", "resource.",
    "shutil.", "signal.", "smtplib.", "socket.", "sqlite3.", "subprocess.", "syslog.",
    "tempfile.", "urllib.", "webbrowser.",
)  # fmt: skip
_HARMLESS = frozenset(
    {"os.listdir", "os.scandir", "os.putenv", "os.unsetenv", "os.add_dll_directory"}
)
_MODULES = frozenset({"_ctypes", "_posixsubprocess", "_socket", "_multiprocessing", "ctypes"})


def main() -> NoReturn:
    """Run the program; never returns."""
    folder, code, cpu, memory, file_bytes, files = sys.argv[1], *map(int, sys.argv[2:])
    with open("program.py", encoding="utf-8") as file:
        source = file.read()
    sys.argv[1:] = []
    _become_nobody()
    _limit(cpu, memory, file_bytes, files)
    sys.addaudithook(_guard(os.path.realpath(folder)))
    leave = os._exit  # pyright: ignore[reportPrivateUsage]
    try:
        exec(compile(source, "program.py", "exec"), {"__name__": "program"})
    except BaseException:  # an exit is no end either
        leave(1)
    leave(code)


def _become_nobody() -> None:
    """Another user's rights, when we are root; in a user namespace there is no other user."""
    if os.getuid() != 0:
        return
    try:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
    except OSError:
        return


def _limit(cpu: int, memory: int, file_bytes: int, files: int) -> None:
    for which, most in (
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, files),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(which)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (most, most))


def _guard(folder: str):
    """An audit hook: reads of the standard library, reads and a few writes in `folder`."""
    library = [
        os.path.realpath(path)
        for path in (sys.prefix, sys.base_prefix, os.path.dirname(os.__file__))
    ]
    written = 0

    def lies_in(path: str | bytes, folders: list[str]) -> bool:
        real = os.path.realpath(os.fsdecode(path))
        return any(real == top or real.startswith(top + os.sep) for top in folders)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal written
        if event == "open":
            path, _, flags = arguments
            if not isinstance(path, str | bytes):
                raise PermissionError("open by number")
            if isinstance(flags, int) and flags & _WRITES:
                written += 1
                if written > _MAY_OPEN_TO_WRITE or not lies_in(path, [folder]):
                    raise PermissionError("open to write")
            elif not lies_in(path, [folder, *library]):
                raise PermissionError("open to read")
        elif event == "import":
            if arguments[0] in _MODULES:
                raise ImportError("refused")
        elif event.startswith(_REFUSED) and event not in _HARMLESS:
            raise PermissionError(event)

    return hook


if __name__ == "__main__":
    main()

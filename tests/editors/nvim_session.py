"""Neovim as people run it, driven by RPC: keys go in, the screen's text comes out."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.editors.installs import installed

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "clients" / "nvim"
VERSIONS = ("0.11", "0.12")
COLUMNS, ROWS = 100, 24
SECONDS = 25.0
"""How long something that must happen may take on a busy machine."""
POLL_SECONDS = 0.005


class Nvim:
    """One Neovim, with our plugin if not told otherwise, in a home of its own."""

    def __init__(
        self,
        version: str,
        home: Path,
        server: list[str] | None = None,
        *,
        before: str = "",
        plugin: bool = True,
        **options: Any,
    ) -> None:
        """`before` is Lua that runs ahead of our setup; `options` are given to it."""
        nvim = installed("nvim")
        if str(nvim / "python") not in sys.path:
            sys.path.append(str(nvim / "python"))
        import pynvim

        self.home = home
        home.mkdir(parents=True, exist_ok=True)
        given = {"cmd": server, **options}
        ours = f"require('dg').setup(vim.json.decode([==[{json.dumps(given)}]==]))\n"
        init = home / "init.lua"
        init.write_text(
            f"vim.opt.runtimepath:prepend('{CLIENT}')\n"
            "vim.o.swapfile = false\n"
            # File type plugins ask for Python, and looking for it takes seconds.
            "vim.g.loaded_python3_provider = 0\n"
            "vim.o.shortmess = vim.o.shortmess .. 'I'\n"
            # Otherwise a long message waits for a key, and no call is answered meanwhile.
            "vim.o.messagesopt = 'wait:0,history:500'\n"
            f"{before}\n"
            f"{ours if plugin else ''}"
        )
        folders = {f"XDG_{name}_HOME": home / name.lower() for name in ("CONFIG", "DATA", "STATE")}
        kept = {key: value for key, value in os.environ.items() if not key.startswith("NVIM")}
        runtime = nvim / version / "runtime"
        env = {**kept, "HOME": home, **folders, "VIMRUNTIME": runtime, "TERM": "xterm-256color"}
        argv = [str(nvim / version / "nvim"), "-u", str(init), "--embed", "--headless"]
        command = ["env", *(f"{key}={value}" for key, value in env.items()), *argv]
        self.api = pynvim.attach("child", argv=command)
        self.api.ui_attach(COLUMNS, ROWS, rgb=True)
        self._frames = False

    def close(self) -> None:
        """End it, whatever is unsaved."""
        try:
            self.api.command("qall!", async_=True)
        finally:
            self.api.close()

    def lua(self, code: str, *arguments: Any) -> Any:
        """Run Lua in it."""
        return self.api.exec_lua(code, *arguments)

    def open(self, path: Path, text: str | bytes | None = None) -> None:
        """Write `text` to the file, edit it, and wait until the server is attached."""
        if text is not None:
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        self.api.command(f"cd {path.parent} | edit {path.name}")
        self.wait(self.attached, "the server is attached")

    def attached(self) -> bool:
        """Whether our server serves the current buffer and told what it can do."""
        code = "local c = require('dg.client').of(0); return c ~= nil and c.initialized == true"
        return bool(self.lua(code))

    def type(self, keys: str) -> None:
        """Press keys, in Neovim's notation."""
        self.api.input(keys)

    def type_each(self, keys: str) -> None:
        """Press keys one at a time, each handled and drawn before the next."""
        for key in keys:
            self.type("<lt>" if key == "<" else key)
            self.screen()

    def screen(self) -> str:
        """What is drawn, without blanks at line ends."""
        rows = self.lua(
            "vim.cmd.redraw() local rows = {} for r = 1, vim.o.lines do local row = {} "
            "for c = 1, vim.o.columns do row[c] = vim.fn.screenstring(r, c) end "
            "rows[r] = table.concat(row) end return rows"
        )
        return "\n".join(row.rstrip() for row in rows)

    def lines(self) -> list[str]:
        """The buffer's lines."""
        return list(self.api.current.buffer[:])

    def cursor(self) -> tuple[int, int]:
        """Row from 1, column in bytes from 0."""
        row, column = self.api.current.window.cursor
        return row, column

    def mode(self) -> str:
        """Neovim's short name of the mode."""
        return str(self.lua("return vim.api.nvim_get_mode().mode"))

    def messages(self) -> str:
        """All messages so far."""
        return str(self.api.command_output("messages"))

    def wait(self, holds: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
        """Wait until something holds; what it was, and the screen, if it never does."""
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                about = f"{self.status()}\n{self.messages()}\n{self.screen()}"
                raise AssertionError(f"{what}: not within {seconds} s\n{about}")
            time.sleep(POLL_SECONDS)

    def wait_for(self, text: str) -> None:
        """Wait until a text is on the screen."""
        self.wait(lambda: text in self.screen(), f"{text!r} is shown")

    def wait_gone(self, text: str) -> None:
        """Wait until a text is not on the screen."""
        self.wait(lambda: text not in self.screen(), f"{text!r} is gone")

    def visible(self) -> bool:
        """Whether a suggestion is shown."""
        return bool(self.lua("return require('dg').visible()"))

    def tell_server(self, method: str) -> None:
        """Send a notification of the tests' own."""
        self.lua("require('dg.client').of(0):notify(..., vim.empty_dict())", method)

    def ask_server(self, method: str) -> dict[str, Any]:
        """Send a request and wait for the answer."""
        code = (
            "local m, p = ... local r = require('dg.client').of(0):request_sync(m, p, 10000, 0)"
            "return r.result"
        )
        return dict(self.lua(code, method, {"x": 1}))

    def status(self) -> dict[str, Any]:
        """What the plugin knows of the server."""
        return dict(self.lua("return require('dg.status').current"))

    def count_bare_frames(self) -> None:
        """From now on, count the drawn frames that have no suggestion in them."""
        self.lua(
            "vim.g.bare, vim.g.frames = 0, 0 "
            "local names = {'dg.ghost', 'nvim.lsp.inline_completion'} "
            "vim.api.nvim_set_decoration_provider(vim.api.nvim_create_namespace('tests'), "
            "{ on_end = function() local n = 0 for _, name in ipairs(names) do "
            "local ns = vim.api.nvim_create_namespace(name) "
            "n = n + #vim.api.nvim_buf_get_extmarks(0, ns, 0, -1, {}) end "
            "vim.g.frames = vim.g.frames + 1 "
            "if n == 0 then vim.g.bare = vim.g.bare + 1 end end })"
        )

    def pid(self) -> int:
        """Its process."""
        return int(self.api.call("getpid"))

    def record_times(self) -> None:
        """From now on, take the time from each key to the suggestion that the server gives."""
        self.lua(
            "local key, sent, answered "
            "vim.g.times, vim.g.answers = {}, 0 "
            "vim.on_key(function() key = vim.uv.hrtime() end) "
            "local native = require('dg.native') local request = native.request "
            "native.request = function(client, method, params, handler, buf) "
            "sent = vim.uv.hrtime() "
            "return request(client, method, params, function(...) answered = vim.uv.hrtime() "
            "handler(...) vim.g.answers = vim.g.answers + 1 end, buf) end "
            "for _, view in ipairs({ native, require('dg.extmarks') }) do local show = view.show "
            "view.show = function(...) show(...) if key and sent and answered "
            "and key < sent and sent < answered then local t = vim.g.times "
            "table.insert(t, { (vim.uv.hrtime() - key) / 1e9, (answered - sent) / 1e9 }) "
            "vim.g.times = t key = nil end end end"
        )

    def times(self) -> tuple[list[float], list[float]]:
        """Seconds from key to suggestion, and how many of each were the server's."""
        pairs = self.api.vars["times"]
        return [total for total, _ in pairs], [server for _, server in pairs]

    def frames(self) -> tuple[int, int]:
        """How many frames were drawn since, and how many of them without a suggestion."""
        return int(self.api.vars["frames"]), int(self.api.vars["bare"])

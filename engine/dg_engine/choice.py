"""Which engine runs the jobs, and how its process learns so."""

from __future__ import annotations

import enum
import ipaddress
from urllib.parse import urlsplit

import msgspec

from dg_engine.engine import EngineError


class EngineKind(enum.StrEnum):
    """The engines that a process of its own can hold."""

    TORCH = "torch"
    """PyTorch on this machine."""
    VLLM = "vllm"
    """vLLM with our plugin on this machine's GPU."""
    REMOTE = "remote"
    """A `vllm serve` with our plugin, on this machine or another."""


class EngineChoice(msgspec.Struct, frozen=True):
    """An engine, and where it is."""

    kind: EngineKind = EngineKind.TORCH
    url: str | None = None
    """Of the server, for REMOTE."""
    key_file: str | None = None
    """File with the server's key, for REMOTE; without it the key comes from the environment."""

    def check(self) -> None:
        """Raise EngineError with one sentence unless the choice is complete."""
        if self.kind is not EngineKind.REMOTE:
            return
        if not self.url:
            raise EngineError('The engine is "remote" but no "remoteUrl" is set; set it.')
        is_near(self.url)

    def arguments(self) -> list[str]:
        """Further arguments of the engine's process (dg_engine.child); a key is none of them."""
        if self.kind is EngineKind.TORCH:
            return []
        found = ["--engine", str(self.kind)]
        if self.kind is EngineKind.REMOTE:
            found += ["--url", self.url] if self.url else []
            found += ["--key-file", self.key_file] if self.key_file else []
        return found


def is_near(url: str) -> bool:
    """Whether an address is of this machine.

    Raises EngineError for what is no address, and for another machine's without TLS: what is sent
    there is the user's code.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if "@" in parts.netloc:
        raise EngineError("The server's address must not hold a key; name a file that does.")
    if parts.scheme not in ("http", "https") or not host:
        raise EngineError(f"{url} is no address; write http://localhost:PORT or https://HOST.")
    near = host == "localhost" or _is_loopback(host)
    if parts.scheme == "http" and not near:
        raise EngineError(f"{url} would carry your code and the key unencrypted; use https.")
    return near


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

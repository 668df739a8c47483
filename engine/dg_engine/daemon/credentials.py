"""Who is at the other end of a Unix socket."""

from __future__ import annotations

import socket
import struct
import sys

_LINUX = struct.Struct("iII")
_MAC_LOCAL_PEERCRED = 0x001
_MAC_XUCRED = struct.Struct("=IIh")


def peer_uid(connection: socket.socket) -> int | None:
    """The user id of the process at the other end; None where the system does not tell."""
    try:
        if sys.platform == "linux":
            raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _LINUX.size)
            return _LINUX.unpack(raw)[1]
        if sys.platform == "darwin":
            # struct xucred: version, uid, number of groups; level 0 is SOL_LOCAL.
            raw = connection.getsockopt(0, _MAC_LOCAL_PEERCRED, 76)
            return _MAC_XUCRED.unpack_from(raw)[1]
    except OSError:
        return None
    return None

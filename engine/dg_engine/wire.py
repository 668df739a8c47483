"""What the server and the engine process say to each other: MessagePack frames over pipes.

A frame is a 4-byte big-endian length and that many bytes of one tagged message. The engine's
standard output carries frames and nothing else; its log goes to standard error.
"""

from __future__ import annotations

import struct
from typing import BinaryIO

import msgspec

from dg_engine.engine import EngineStatus
from dg_engine.job import CanvasJob, EngineInfo, Frame

PROTOCOL = 1
MAX_FRAME_BYTES = 64 * 2**20
HEADER = struct.Struct(">I")


class Submit(msgspec.Struct, frozen=True, tag="submit"):
    """Run a job."""

    job: CanvasJob


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """Stop a job within one step."""

    job: str


class Close(msgspec.Struct, frozen=True, tag="close"):
    """End every job and exit."""


class Ping(msgspec.Struct, frozen=True, tag="ping"):
    """Are you there?"""

    count: int


Request = Submit | Cancel | Close | Ping


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The model is loaded."""

    info: EngineInfo
    protocol: int
    seconds: float
    """From the start of the process."""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The model cannot be loaded; the process ends. One sentence."""

    message: str


class Progress(msgspec.Struct, frozen=True, tag="frame"):
    """A frame of a job."""

    frame: Frame


class Pong(msgspec.Struct, frozen=True, tag="pong"):
    """The process is alive; `jobs` are queued or running."""

    count: int
    jobs: int


class Changed(msgspec.Struct, frozen=True, tag="changed"):
    """An engine that is shared changed its state; jobs may be sent all the same."""

    status: EngineStatus


Reply = Ready | Failed | Progress | Pong | Changed

_encoder = msgspec.msgpack.Encoder()
_requests = msgspec.msgpack.Decoder(Request)
_replies = msgspec.msgpack.Decoder(Reply)


class WireError(ValueError):
    """Bytes that are no frame of ours."""


def pack(message: Request | Reply) -> bytes:
    """One message as a frame."""
    return framed(message)


def framed(message: msgspec.Struct) -> bytes:
    """A frame of any message; raises WireError when it is too long."""
    body = _encoder.encode(message)
    if len(body) > MAX_FRAME_BYTES:
        raise WireError(f"A message of {len(body)} bytes passes the limit of {MAX_FRAME_BYTES}.")
    return HEADER.pack(len(body)) + body


def body_length(header: bytes) -> int:
    """Bytes that follow a header."""
    (length,) = HEADER.unpack(header)
    if length > MAX_FRAME_BYTES:
        raise WireError(f"A frame of {length} bytes passes the limit of {MAX_FRAME_BYTES}.")
    return length


def unpack_request(body: bytes) -> Request:
    """A message from the server."""
    try:
        return _requests.decode(body)
    except msgspec.MsgspecError as error:
        raise WireError(f"Not a request: {error}") from error


def unpack_reply(body: bytes) -> Reply:
    """A message from the engine process."""
    try:
        return _replies.decode(body)
    except msgspec.MsgspecError as error:
        raise WireError(f"Not a reply: {error}") from error


def read_body(stream: BinaryIO) -> bytes | None:
    """The next frame's body from a blocking stream; None at its end, even inside a frame."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    length = body_length(header)
    body = stream.read(length)
    return body if len(body) == length else None

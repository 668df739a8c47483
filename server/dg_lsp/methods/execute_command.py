"""workspace/executeCommand: run one of our commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
from pygls.exceptions import JsonRpcInvalidParams

from dg_lsp.commands import accepted, complete_block, edit, status
from dg_lsp.session import Session


class Command(NamedTuple):
    """A command takes one argument, an object of this type."""

    arguments: type[msgspec.Struct]
    run: Callable[[Session, Any], Awaitable[object]]


COMMANDS = {
    module.NAME: Command(module.Arguments, module.run)
    for module in (accepted, complete_block, edit, status)
}


class Params(msgspec.Struct, frozen=True):
    """ExecuteCommandParams."""

    command: str
    arguments: list[msgspec.Raw] = []


async def handle(session: Session, params: Params) -> object:
    """Run the command; an unknown one or wrong arguments are errors of the request."""
    command = COMMANDS.get(params.command)
    if command is None:
        known = ", ".join(sorted(COMMANDS))
        raise JsonRpcInvalidParams(f"There is no command {params.command!r}; known are {known}.")
    given = params.arguments[0] if params.arguments else msgspec.Raw(b"{}")
    try:
        arguments = msgspec.json.decode(given, type=command.arguments)
    except msgspec.ValidationError as error:
        raise JsonRpcInvalidParams(
            f"The argument of {params.command} is malformed: {error}."
        ) from error
    return await command.run(session, arguments)

"""workspace/executeCommand: run one of our commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from dg_lsp.commands import (
    accept_edit,
    accepted,
    complete_block,
    discard_edit,
    edit,
    fill_holes,
    next_edit_accepted,
    status,
    write_docstring,
)
from dg_lsp.protocol import UnusableParams
from dg_lsp.session import Session


class Command(NamedTuple):
    """A command takes one argument, an object of this type.

    What `on_receipt` makes of it is run; it sees the documents as the client saw them.
    """

    arguments: type[msgspec.Struct]
    run: Callable[[Session, Any], Awaitable[object]]
    on_receipt: Callable[[Session, Any], object] = lambda session, arguments: arguments


class Call(NamedTuple):
    """A command and what it is run with."""

    command: Command
    given: object


COMMANDS = {
    module.NAME: Command(module.Arguments, module.run)
    for module in (
        accept_edit,
        accepted,
        complete_block,
        discard_edit,
        fill_holes,
        next_edit_accepted,
        status,
        write_docstring,
    )
}
COMMANDS[edit.NAME] = Command(edit.Arguments, edit.run, edit.on_receipt)


class Params(msgspec.Struct, frozen=True):
    """ExecuteCommandParams."""

    command: str
    arguments: list[msgspec.Raw] = []


def on_receipt(session: Session, params: Params) -> Call:
    """Which command to run; an unknown one or wrong arguments are errors of the request."""
    command = COMMANDS.get(params.command)
    if command is None:
        known = ", ".join(sorted(COMMANDS))
        raise UnusableParams(f"There is no command {params.command!r}; known are {known}.")
    given = params.arguments[0] if params.arguments else msgspec.Raw(b"{}")
    try:
        arguments = msgspec.json.decode(given, type=command.arguments)
    except msgspec.ValidationError as error:
        raise UnusableParams(f"The argument of {params.command} is malformed: {error}.") from error
    return Call(command, command.on_receipt(session, arguments))


async def handle(session: Session, call: Call) -> object:
    """Run the command."""
    return await call.command.run(session, call.given)

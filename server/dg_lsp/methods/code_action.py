"""textDocument/codeAction: "Edit with instruction…" and "Complete the block"."""

from __future__ import annotations

import msgspec
from lsprotocol import types

from dg_lsp.commands import complete_block, edit
from dg_lsp.methods.text import DocumentId
from dg_lsp.positions import Range
from dg_lsp.prompts.view import view_at
from dg_lsp.scope import opens_block
from dg_lsp.session import Session

KINDS = [types.CodeActionKind.RefactorRewrite, types.CodeActionKind.QuickFix]


class Context(msgspec.Struct, frozen=True):
    """CodeActionContext."""

    only: list[str] | None = None


class Params(msgspec.Struct, frozen=True, rename="camel"):
    """CodeActionParams."""

    text_document: DocumentId
    range: Range
    context: Context = Context()


async def handle(session: Session, params: Params) -> list[types.CodeAction]:
    """Offer what can be done at the range; the actions carry the version that they are for."""
    document = session.documents.get(params.text_document.uri)
    if document is None:
        return []
    actions: list[types.CodeAction] = []
    # The client asks for the instruction and adds it; it knows how to ask, the server does not.
    edit_arguments = edit.Arguments(document.uri, params.range, "", document.version)
    if _wanted(params.context.only, types.CodeActionKind.RefactorRewrite):
        actions.append(
            _action(
                "Edit with instruction…",
                types.CodeActionKind.RefactorRewrite,
                edit.NAME,
                edit_arguments,
            )
        )
    line, column = document.place(params.range.start, session.encoding)
    view = view_at(document.lines, line, column, path="", language=document.language)
    empty = params.range.start == params.range.end
    if empty and opens_block(view) and _wanted(params.context.only, types.CodeActionKind.QuickFix):
        actions.append(
            _action(
                "Complete the block",
                types.CodeActionKind.QuickFix,
                complete_block.NAME,
                complete_block.Arguments(document.uri, params.range.start, document.version),
            )
        )
    return actions


def _action(
    title: str, kind: types.CodeActionKind, command: str, arguments: msgspec.Struct
) -> types.CodeAction:
    call = types.Command(title=title, command=command, arguments=[msgspec.to_builtins(arguments)])
    return types.CodeAction(title=title, kind=kind, command=call)


def _wanted(only: list[str] | None, kind: types.CodeActionKind) -> bool:
    """Whether a client that filters kinds asks for this one or one that contains it."""
    return only is None or any(
        kind.value == wanted or kind.value.startswith(wanted + ".") for wanted in only if wanted
    )

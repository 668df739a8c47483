"""textDocument/codeAction: what can be done at a range; nothing is done before the user chooses."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from lsprotocol import types

from dg_lsp.commands import complete_block, edit, fill_holes, write_docstring
from dg_lsp.docstrings import gap_at
from dg_lsp.documents import Document
from dg_lsp.lines import body_of
from dg_lsp.marks import marks_in
from dg_lsp.methods.diagnostics import Diagnostic, placed
from dg_lsp.methods.text import DocumentId
from dg_lsp.positions import Range
from dg_lsp.prompts.view import view_at
from dg_lsp.scope import opens_block
from dg_lsp.session import Session

KINDS = [types.CodeActionKind.RefactorRewrite, types.CodeActionKind.QuickFix]
_REWRITE, _FIX = KINDS
MOST_DIAGNOSTICS = 5
"""Diagnostics of one range that get an action each."""
_TITLE_CHARS = 60
_INSTRUCTION_CHARS = 500


class Context(msgspec.Struct, frozen=True):
    """CodeActionContext."""

    diagnostics: list[Diagnostic] = []
    only: list[str] | None = None


class Params(msgspec.Struct, frozen=True, rename="camel"):
    """CodeActionParams."""

    text_document: DocumentId
    range: Range
    context: Context = Context()


async def handle(session: Session, params: Params) -> list[types.CodeAction]:
    """Offer what can be done at the range; the actions carry the version that they are for."""
    document = session.documents.get(params.text_document.uri)
    if document is None or not session.may_complete(document.uri).allowed:
        return []
    told = [(d.range.start.line, d.message) for d in params.context.diagnostics]
    session.context.diagnosed(document, told)
    if session.configuration_of(document.uri).next_edit:
        here = placed(document, params.context.diagnostics, session.encoding)
        session.next_edits.diagnosed(document, here)
    only = params.context.only
    return [
        action
        for action in _actions(session, document, params)
        if action.kind is None or _wanted(only, action.kind)
    ]


def _actions(session: Session, document: Document, params: Params) -> Iterator[types.CodeAction]:
    uri, version, chosen = document.uri, document.version, params.range
    # The client asks for the instruction and adds it; it knows how to ask, the server does not.
    wish = edit.Arguments(uri, chosen, "", version)
    yield _action("Edit with instruction…", _REWRITE, edit.NAME, wish)
    diagnostics = [d for d in params.context.diagnostics if d.message.strip()][:MOST_DIAGNOSTICS]
    for diagnostic in diagnostics:
        message = " ".join(diagnostic.message.split())
        fix = edit.Arguments(uri, diagnostic.range, message[:_INSTRUCTION_CHARS], version)
        named = f": {_shortened(message)}" if len(diagnostics) > 1 else ""
        action = _action(f"Fix this diagnostic{named}", _FIX, edit.NAME, fix)
        action.diagnostics = [_told(diagnostic)]
        yield action
    places = (chosen.start, chosen.end)
    (line, column), (last, _) = sorted(document.place(p, session.encoding) for p in places)
    empty = chosen.start == chosen.end
    if marks_in(document.lines, line, last):
        within = None if empty else _with_marks(session, document, chosen, (line, last))
        holes = fill_holes.Arguments(uri, version, within)
        yield _action("Fill the holes", _FIX, fill_holes.NAME, holes)
    if gap_at(document.lines, line, document.language) is not None:
        docstring = write_docstring.Arguments(uri, chosen.start, version)
        yield _action("Write the docstring", _REWRITE, write_docstring.NAME, docstring)
    view = view_at(document.lines, line, column, path="", language=document.language)
    if empty and opens_block(view):
        block = complete_block.Arguments(uri, chosen.start, version)
        yield _action("Complete the block", _FIX, complete_block.NAME, block)


def _with_marks(
    session: Session, document: Document, chosen: Range, lines: tuple[int, int]
) -> Range:
    """A selection, or its lines where it holds no mark: some editors always select a character."""
    if fill_holes.marks_of(session, document, chosen):
        return chosen
    first, last = lines
    end = len(body_of(document.lines[last]))
    return Range(
        document.position(first, 0, session.encoding),
        document.position(last, end, session.encoding),
    )


def _action(
    title: str, kind: types.CodeActionKind, command: str, arguments: msgspec.Struct
) -> types.CodeAction:
    call = types.Command(title=title, command=command, arguments=[msgspec.to_builtins(arguments)])
    return types.CodeAction(title=title, kind=kind, command=call)


def _told(diagnostic: Diagnostic) -> types.Diagnostic:
    """The diagnostic as the client sent it, so that it finds its own again."""
    start, end = diagnostic.range.start, diagnostic.range.end
    severity = diagnostic.severity
    return types.Diagnostic(
        range=types.Range(
            start=types.Position(line=start.line, character=start.character),
            end=types.Position(line=end.line, character=end.character),
        ),
        message=diagnostic.message,
        severity=types.DiagnosticSeverity(severity) if severity in range(1, 5) else None,
        code=diagnostic.code,
        source=diagnostic.source,
        data=diagnostic.data,
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _TITLE_CHARS else text[: _TITLE_CHARS - 1] + "…"


def _wanted(only: list[str] | None, kind: types.CodeActionKind | str) -> bool:
    """Whether a client that filters kinds asks for this one or one that contains it."""
    name = kind.value if isinstance(kind, types.CodeActionKind) else kind
    return only is None or any(
        name == wanted or name.startswith(wanted + ".") for wanted in only if wanted
    )

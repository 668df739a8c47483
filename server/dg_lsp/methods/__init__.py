"""The LSP methods that the server speaks, one module each.

A handler gets the session and the parameters. Those that only change documents are plain
functions, so that the next message sees the change; all others are asynchronous.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from lsprotocol import types

from dg_lsp.methods import (
    code_action,
    copilot_inline_edit,
    did_change,
    did_change_configuration,
    did_change_focus,
    did_change_workspace_folders,
    did_close,
    did_open,
    did_partially_accept_completion,
    did_show_completion,
    did_show_inline_edit,
    execute_command,
    exit,
    initialize,
    initialized,
    inline_completion,
    notebook_did_change,
    notebook_did_close,
    notebook_did_open,
    notebook_did_save,
    shutdown,
    status,
)
from dg_lsp.session import Session


class Method(NamedTuple):
    """A method, its handler, the type of its parameters where it is ours, and its options.

    What `on_receipt` makes of the parameters is handled; it runs before the next message is read.
    """

    name: str
    handle: Callable[[Session, Any], object]
    params: type[msgspec.Struct] | None = None
    options: object | None = None
    on_receipt: Callable[[Session, Any], object] | None = None


METHODS = [
    Method(types.INITIALIZE, initialize.handle),
    Method(types.INITIALIZED, initialized.handle),
    Method(types.SHUTDOWN, shutdown.handle),
    Method(types.EXIT, exit.handle),
    Method(types.TEXT_DOCUMENT_DID_OPEN, did_open.handle, did_open.Params),
    Method(types.TEXT_DOCUMENT_DID_CHANGE, did_change.handle, did_change.Params),
    Method(types.TEXT_DOCUMENT_DID_CLOSE, did_close.handle, did_close.Params),
    Method(types.NOTEBOOK_DOCUMENT_DID_OPEN, notebook_did_open.handle, notebook_did_open.Params),
    Method(
        types.NOTEBOOK_DOCUMENT_DID_CHANGE,
        notebook_did_change.handle,
        notebook_did_change.Params,
    ),
    Method(types.NOTEBOOK_DOCUMENT_DID_SAVE, notebook_did_save.handle, notebook_did_save.Params),
    Method(types.NOTEBOOK_DOCUMENT_DID_CLOSE, notebook_did_close.handle, notebook_did_close.Params),
    Method(
        types.TEXT_DOCUMENT_INLINE_COMPLETION,
        inline_completion.handle,
        inline_completion.Params,
        # Without options pygls does not advertise the method.
        types.InlineCompletionOptions(),
        inline_completion.on_receipt,
    ),
    Method(did_show_completion.NAME, did_show_completion.handle, did_show_completion.Params),
    Method(
        did_partially_accept_completion.NAME,
        did_partially_accept_completion.handle,
        did_partially_accept_completion.Params,
    ),
    Method(
        copilot_inline_edit.NAME,
        copilot_inline_edit.handle,
        copilot_inline_edit.Params,
        on_receipt=copilot_inline_edit.on_receipt,
    ),
    Method(did_show_inline_edit.NAME, did_show_inline_edit.handle, did_show_inline_edit.Params),
    Method(
        types.TEXT_DOCUMENT_CODE_ACTION,
        code_action.handle,
        code_action.Params,
        types.CodeActionOptions(code_action_kinds=code_action.KINDS),
    ),
    Method(
        types.WORKSPACE_EXECUTE_COMMAND,
        execute_command.handle,
        execute_command.Params,
        on_receipt=execute_command.on_receipt,
    ),
    Method(
        types.WORKSPACE_DID_CHANGE_CONFIGURATION,
        did_change_configuration.handle,
        did_change_configuration.Params,
    ),
    Method(
        types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS,
        did_change_workspace_folders.handle,
        did_change_workspace_folders.Params,
    ),
    Method(did_change_focus.NAME, did_change_focus.handle, did_change_focus.Params),
    Method(status.NAME, status.handle, status.Params),
]

IN_PLACE_OF_BUILTIN = [
    types.EXIT,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS,
    types.WORKSPACE_EXECUTE_COMMAND,
]
"""Methods that pygls would handle itself before calling us: it keeps a second copy of every
document, ends the process its own way, and runs commands where a cancel does not reach them."""

"""pygls' protocol with the edges that ours needs: our own parameter types, an answer for each id.

What pygls 2.1 does and we do not want: parameters that do not parse get no response; its types
drop fields that clients send (`version`, `formattingOptions`); after shutdown, requests get no
response. Cancelling is pygls' own: it cancels the request's task, whose response is the error
RequestCancelled.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any, cast

import msgspec
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    LanguageServerProtocol,
    lsp_method,
)

from dg_lsp.editor import EditorError
from dg_lsp.positions import without_lone_surrogates
from dg_lsp.privacy.logs import is_tracing
from dg_lsp.transport import Outbox

logger = logging.getLogger(__name__)

MessageId = int | str
_VERSION = "2.0"


class Envelope(msgspec.Struct):
    """A JSON-RPC message whose parameters are not read yet."""

    id: MessageId | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw(b"null")


class UnusableParams(JsonRpcInvalidParams):
    """Parameters of a shape that parses and that name nothing; the message is one sentence."""


class Cancel(msgspec.Struct, frozen=True):
    """CancelParams; an id of another kind is no request's and is refused as malformed."""

    id: MessageId


class Response(msgspec.Struct):
    """The response with a result that has its shape already."""

    id: MessageId
    result: msgspec.Struct
    jsonrpc: str = _VERSION


class _Identified(msgspec.Struct):
    """All that is needed of a message to say that it is wrong."""

    id: MessageId | None = None


class Protocol(LanguageServerProtocol):
    """Decodes messages, checks the session's state and leaves the rest to pygls."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._own_params: dict[str, type[msgspec.Struct]] = {}
        self._on_receipt: dict[str, Callable[[Any], object]] = {}
        self._plain: dict[str, Callable[[Any], object]] = {}
        self._greeted = False
        self.outbox: Outbox | None = None
        """Where messages are written, for those that may replace each other."""
        self.experimental: Callable[[], dict[str, Any]] = dict
        """What the server can do that the specification has no word for."""

    @property
    def was_shut_down(self) -> bool:
        """Whether the client sent shutdown."""
        return self._shutdown

    def drop_builtin(self, method: str) -> None:
        """Leave `method` to the handler that is registered for it, without pygls' own part."""
        builtin = cast("dict[str, object]", vars(self.fm)["_builtin_features"])
        del builtin[method]

    def own(
        self,
        method: str,
        params: type[msgspec.Struct],
        on_receipt: Callable[[Any], object] | None = None,
    ) -> None:
        """Read the parameters of `method` as `params`, in place of the type of lsprotocol.

        What `on_receipt` makes of them is handled. It runs as a message arrives, and an
        asynchronous handler only after all that arrived with it.
        """
        self._own_params[method] = params
        if on_receipt is not None:
            self._on_receipt[method] = on_receipt

    def run_plain(self, method: str, handler: Callable[[Any], object]) -> None:
        """Run the plain function that handles a notification at once, without a future for it."""
        self._plain[method] = handler

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(
        self, params: types.InitializeParams
    ) -> Generator[Any, Any, types.InitializeResult]:
        """As pygls, with what else the settings allow."""
        result: types.InitializeResult = yield from super().lsp_initialize(params)
        if experimental := self.experimental():
            result.capabilities.experimental = experimental
        return result

    def receive(self, body: bytes) -> None:
        """Handle one message; whatever is wrong with it, the next one is handled as well."""
        try:
            body, envelope = _opened(body)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            logger.warning("A message is not JSON-RPC (%s).", error)
            self._refuse_unread(body, f"This is not JSON-RPC: {error}.")
            return
        refusal = self._out_of_turn(envelope)
        if refusal is not None:
            self._refuse(envelope.id, *refusal)
            return
        try:
            message = self._structured(body, envelope)
        except (msgspec.MsgspecError, JsonRpcException) as error:
            what = envelope.method or "A response"
            logger.warning("%s has parameters of the wrong shape (%s).", what, error)
            if envelope.method is not None:
                why = f"The parameters of {envelope.method} are malformed: {error}."
                if isinstance(error, UnusableParams):
                    why = str(error)
                self._refuse(envelope.id, types.ErrorCodes.InvalidParams, why)
            elif envelope.id is not None:
                # Whoever waits for this response must not wait for ever.
                self._handle_response(envelope.id, None)
            return
        if envelope.id is not None and envelope.method is not None and not hasattr(message, "id"):
            why = f"{envelope.method} is a notification; send it without an id."
            self._refuse(envelope.id, types.ErrorCodes.InvalidRequest, why)
            return
        try:
            self.handle_message(message)
        except Exception:
            # A bug in one handler must not end the reading of messages.
            logger.exception("%s could not be handled.", envelope.method)

    def handle_message(self, message: Any) -> None:
        """As pygls, which looks through protocols of `typing` for what a message is: that takes
        longer than to change a document."""
        kind = cast("type[object]", type(message))
        if kind is JsonRPCNotification and not self._shutdown:
            run = self._plain.get(message.method)
            if run is not None:
                self._run_plain(run, message.params)
            else:
                copy_context().run(self._handle_notification, message.method, message.params)
        elif kind is JsonRPCRequestMessage and not self._shutdown:
            copy_context().run(self._handle_request, message.id, message.method, message.params)
        else:
            super().handle_message(message)

    def _run_plain(self, run: Callable[[Any], object], params: object) -> None:
        try:
            run(params)
        except Exception as error:
            failed: Future[object] = Future()
            failed.set_exception(error)
            self._check_handler_result(failed)

    async def ask(self, method: str, params: object) -> object:
        """Send a request to the editor and wait for its result; raises EditorError.

        A response that cannot be read is one without a result.
        """
        try:
            return cast("object", await self.send_request_async(method, params))
        except JsonRpcException as error:
            raise EditorError(str(error)) from error

    def notify_newest(self, key: str, method: str, params: object) -> None:
        """Send a notification in place of one with this key that the editor has not read yet."""
        if self.outbox is None:
            return
        body = msgspec.json.encode({"jsonrpc": _VERSION, "method": method, "params": params})
        self.outbox.write_newest(key, b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def _send_response(
        self,
        msg_id: MessageId,
        result: object = None,
        error: types.ResponseError | None = None,
    ) -> None:
        """As pygls, which takes longer to find out what a result is made of than to write it."""
        if error is not None or not isinstance(result, msgspec.Struct) or self.outbox is None:
            super()._send_response(msg_id, result, error)
        elif is_tracing():
            super()._send_response(msg_id, msgspec.to_builtins(result), error)
        else:
            self._result_types.pop(msg_id, None)
            body = msgspec.json.encode(Response(msg_id, result))
            self.outbox.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def _out_of_turn(self, envelope: Envelope) -> tuple[types.ErrorCodes, str] | None:
        """Why a request may not come now (LSP, Server lifecycle); None when it may."""
        if envelope.method is None or envelope.id is None:
            return None
        starts = envelope.method == types.INITIALIZE
        if starts and self._greeted:
            return types.ErrorCodes.InvalidRequest, "initialize may be sent only once."
        if not starts and not self._greeted:
            return types.ErrorCodes.ServerNotInitialized, "Send initialize first."
        if self._shutdown:
            return types.ErrorCodes.InvalidRequest, "The server is shutting down."
        return None

    def _structured(self, body: bytes, envelope: Envelope) -> Any:
        own = self._own_params.get(envelope.method or "")
        if own is None:
            message = self.structure_message(msgspec.json.decode(body))
            self._greeted = self._greeted or envelope.method == types.INITIALIZE
            return message
        # Null is what an envelope without parameters has.
        given = b"{}" if bytes(envelope.params) == b"null" else envelope.params
        # Not strict: a client may send 1.0 where 1 is meant.
        params = msgspec.json.decode(given, type=own, strict=False)
        method = cast("str", envelope.method)
        if (on_receipt := self._on_receipt.get(method)) is not None:
            params = on_receipt(params)
        if envelope.id is None:
            return JsonRPCNotification(method=method, jsonrpc=_VERSION, params=params)
        return JsonRPCRequestMessage(id=envelope.id, method=method, jsonrpc=_VERSION, params=params)

    def _refuse_unread(self, body: bytes, why: str) -> None:
        """Answer what has no proper envelope, by its id if that can be read."""
        try:
            message_id = msgspec.json.decode(body, type=_Identified).id
        except (msgspec.MsgspecError, RecursionError):
            message_id = None
        known = message_id is not None
        code = types.ErrorCodes.InvalidRequest if known else types.ErrorCodes.ParseError
        self._refuse(message_id, code, why)

    def _refuse(self, message_id: MessageId | None, code: types.ErrorCodes, why: str) -> None:
        if message_id is None and code is not types.ErrorCodes.ParseError:
            return  # a notification
        error = types.ResponseError(code=code, message=why)
        self._send_response(cast("MessageId", message_id), None, error)


def _opened(body: bytes) -> tuple[bytes, Envelope]:
    try:
        return body, msgspec.json.decode(body, type=Envelope)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # Half a surrogate pair is legal JSON, which Python's parser reads and msgspec does not.
        mended = json.dumps(json.loads(body), ensure_ascii=False)
        body = without_lone_surrogates(mended).encode()
        return body, msgspec.json.decode(body, type=Envelope)

"""What the libraries for HTTP and WebSockets raise, in the terms of the error table."""

from __future__ import annotations

import json

import httpx
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidMessage,
    InvalidStatus,
    WebSocketException,
)

from libdsec._core.config import Server
from libdsec._core.retry import Deadline
from libdsec.errors import ERROR_CLASSES, DsecError, ProtocolError, UnavailableError, error_of_body

# By RFC 6455; every other error is 4000 and its exit code (packages/transport/src/websocket-codes.ts).
CLOSE_CODES = {
    1002: "protocol",
    1003: "invalid-argument",
    1007: "protocol",
    1008: "permission-denied",
    1009: "too-large",
    1011: "internal",
    1013: "overloaded",
    **{4000 + kind.exit_code: code for code, kind in ERROR_CLASSES.items()},
}


def error_of_http(fault: Exception, server: Server, deadline: Deadline) -> DsecError:
    """Of a request that got no answer, or whose answer broke off."""
    if deadline.is_over:
        return deadline.error()
    if isinstance(
        fault, (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.DecodingError)
    ):
        return ProtocolError(f"{server.shown}: {fault}")
    if isinstance(fault, httpx.ConnectError):
        return UnavailableError(
            f"nothing answers at {server.shown} ({fault}); is `dsec up` running there?",
            details={"reached": False},
        )
    if isinstance(fault, httpx.TimeoutException):
        return UnavailableError(
            f"nothing came from {server.shown} for too long ({type(fault).__name__})"
        )
    return UnavailableError(
        f"the connection to {server.shown} was lost ({fault or type(fault).__name__})"
    )


def error_of_response(status: int, content: bytes, request_id: str | None) -> DsecError:
    """Of an answer that is not a success."""
    try:
        body = json.loads(content)
    except ValueError:
        body = None
    return error_of_body(body, status=status, request_id=request_id)


def error_of_socket(fault: Exception, server: Server) -> DsecError:
    """Of a WebSocket that could not be opened, or was closed other than in the normal way."""
    if isinstance(fault, InvalidStatus):
        response = fault.response
        request_id = response.headers.get("x-request-id")
        return error_of_response(response.status_code, bytes(response.body or b""), request_id)
    if isinstance(fault, ConnectionClosed):
        close = fault.rcvd
        if close is None:
            return UnavailableError(f"the WebSocket to {server.shown} was lost")
        kind = ERROR_CLASSES[
            CLOSE_CODES.get(close.code, "unavailable" if close.code < 4000 else "protocol")
        ]
        return kind(close.reason or f"the WebSocket was closed with {close.code}")
    if isinstance(fault, OSError) or isinstance(fault, InvalidMessage):
        return UnavailableError(
            f"nothing answers at {server.shown} ({fault}); is `dsec up` running there?"
        )
    if isinstance(fault, (InvalidHandshake, WebSocketException)):
        return ProtocolError(f"{server.shown}: {fault}")
    return UnavailableError(f"the WebSocket to {server.shown} was lost ({fault})")

"""A server that answers as a test tells it to, also badly: it hangs up, stalls, and forgets."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

KEY = "dsec_" + "k" * 43
# The rest of a body is read and forgotten.
BODY_BYTES_KEPT = 4 * 2**20


@dataclass(frozen=True)
class Recorded:
    """A request that came."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def key(self) -> str | None:
        return self.headers.get("idempotency-key")


class HangUp(Exception):
    """Ends the connection without another word."""


class Exchange:
    """One request and what is answered to it."""

    def __init__(self, handler: BaseHTTPRequestHandler, request: Recorded) -> None:
        self._handler = handler
        self.request = request

    def json(self, value: object, status: int = 200) -> None:
        self.bytes(json.dumps(value).encode(), status, {"content-type": "application/json"})

    def error(self, code: str, status: int = 503, **more: object) -> None:
        body = {
            "code": code,
            "message": f"no: {code}",
            "retryable": False,
            "remedy": "Do so.",
            **more,
        }
        self.json({"details": {}, **body}, status)

    def bytes(self, data: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self._head(status, {**(headers or {}), "content-length": str(len(data))})
        self._handler.wfile.write(data)

    def empty(self) -> None:
        self._head(204, {})

    def begin(self, headers: dict[str, str] | None = None) -> None:
        """Of an answer that comes in chunks."""
        self._head(200, {**(headers or {}), "transfer-encoding": "chunked"})

    def chunk(self, data: bytes) -> None:
        self._handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self._handler.wfile.flush()

    def line(self, value: object) -> None:
        self.chunk(json.dumps(value).encode() + b"\n")

    def end(self) -> None:
        self._handler.wfile.write(b"0\r\n\r\n")

    def upgrade(self) -> Socket:
        key = self.request.headers["sec-websocket-key"].encode()
        accept = hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        self._handler.send_response(101)
        self._handler.send_header("connection", "upgrade")
        self._handler.send_header("upgrade", "websocket")
        self._handler.send_header("sec-websocket-accept", base64.b64encode(accept).decode())
        self._handler.end_headers()
        self._handler.close_connection = True
        return Socket(self._handler)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self._handler.send_response(status)
        for name, value in {"x-request-id": "request-1", **headers}.items():
            self._handler.send_header(name, value)
        self._handler.end_headers()


class Socket:
    """The server's side of a WebSocket."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self._handler = handler

    def send(self, message: bytes | dict[str, Any]) -> None:
        if isinstance(message, bytes):
            self._frame(2, message)
        else:
            self._frame(1, json.dumps(message).encode())

    def output(self, stream: str, offset: int, data: bytes) -> None:
        """A piece of an attached command's output."""
        self.send(struct.pack("<BQ", {"stdout": 1, "stderr": 2}[stream], offset) + data)

    def close(self, code: int = 1000, reason: str = "") -> None:
        self._frame(8, struct.pack(">H", code) + reason.encode())
        self.receive()

    def receive(self) -> bytes:
        """The payload of the next message."""
        read = self._handler.rfile.read
        head = read(2)
        if len(head) < 2:
            raise HangUp
        length = head[1] & 127
        if length > 125:
            length = int.from_bytes(read(2 if length == 126 else 8), "big")
        mask, payload = read(4), read(length)
        return bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))

    def _frame(self, kind: int, payload: bytes) -> None:
        size = len(payload)
        if size < 126:
            length = bytes([size])
        elif size < 65_536:
            length = b"\x7e" + struct.pack(">H", size)
        else:
            length = b"\x7f" + struct.pack(">Q", size)
        self._handler.wfile.write(bytes([128 | kind]) + length + payload)
        self._handler.wfile.flush()


Answer = Callable[[Exchange], None]


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left."""


class FakeServer:
    """Answers to a method and path in the order given; the last answer is given again and again."""

    def __init__(self) -> None:
        self.requests: list[Recorded] = []
        self.faults: list[Exception] = []
        self._answers: dict[tuple[str, str], list[Answer]] = {}
        self._http = QuietServer(("127.0.0.1", 0), self._handler_class())
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def on(self, method: str, path: str, *answers: Answer) -> None:
        self._answers[method, path] = list(answers)

    def to(self, method: str, path: str) -> list[Recorded]:
        return [one for one in self.requests if (one.method, one.path) == (method, path)]

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _answer(self, exchange: Exchange) -> None:
        request = exchange.request
        self.requests.append(request)
        answers = self._answers.get((request.method, request.path))
        if answers is None:
            return exchange.error("not-found", 404)
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        answer(exchange)

    def _handler_class(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do(self) -> None:
                target = urlsplit(self.path)
                headers = {name.lower(): value for name, value in self.headers.items()}
                length = int(headers.get("content-length", 0))
                body = self.rfile.read(min(length, BODY_BYTES_KEPT))
                for start in range(len(body), length, BODY_BYTES_KEPT):
                    self.rfile.read(min(BODY_BYTES_KEPT, length - start))
                if headers.get("transfer-encoding") == "chunked":
                    while size := int(self.rfile.readline(), 16):
                        body += self.rfile.read(size)
                        self.rfile.readline()
                    self.rfile.readline()
                query = parse_qs(target.query, keep_blank_values=True)
                request = Recorded(self.command, target.path, query, headers, body)
                try:
                    server._answer(Exchange(self, request))
                except (HangUp, OSError):
                    self.close_connection = True
                except Exception as fault:
                    server.faults.append(fault)
                    self.close_connection = True

            do_GET = do_POST = do_PUT = do_DELETE = do

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


def hang_up(exchange: Exchange) -> None:
    raise HangUp


def refuse(code: str, status: int = 503, **more: object) -> Answer:
    return lambda exchange: exchange.error(code, status, **more)


def give(value: object, status: int = 200) -> Answer:
    return lambda exchange: exchange.json(value, status)

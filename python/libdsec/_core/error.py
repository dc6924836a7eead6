"""The base of all errors. Its subclasses, one for each code, are generated (`libdsec.errors_gen`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Union

Details = Mapping[str, Union[str, float, bool]]


class DsecError(Exception):
    """An error of DSec. Decide by its class or by `code`; the message is for people and may change.

    `code`: as in docs/reference/errors.md. `status`: of the HTTP response that carries it. `retryable`: the
    same request may succeed later. `exit_code`: that of the command line. `remedy`: what the caller can do.
    `details`: more that a program may want. `request_id`: names the request in the logs of the server.
    """

    code: str = "internal"
    status: int = 500
    retryable: bool = False
    exit_code: int = 18
    remedy: str = ""

    def __init__(
        self, message: str, *, details: Details | None = None, request_id: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details: Details = dict(details or {})
        self.request_id = request_id

    def __str__(self) -> str:
        request = "" if self.request_id is None else f", request {self.request_id}"
        return f"{self.message} ({self.code}{request}). {self.remedy}".rstrip(" ")

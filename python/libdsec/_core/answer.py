"""Answers as models."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from libdsec.errors import ProtocolError

M = TypeVar("M", bound=BaseModel)


def parse_answer(model: type[M], content: bytes | str) -> M:
    """`ProtocolError` for what does not fit, which no server of this API says."""
    try:
        return model.model_validate_json(content)
    except ValidationError as cause:
        raise ProtocolError(f"the answer is no {model.__name__}: {first_problem(cause)}") from cause


def first_problem(error: ValidationError) -> str:
    """Where the first one is, and what."""
    first: Any = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])

"""Events as the caller gets them."""

from __future__ import annotations

from typing import Literal

from pydantic import ValidationError

from libdsec import models_gen as models

Event = (
    models.SandboxStateEvent
    | models.ExecExitEvent
    | models.SessionEndEvent
    | models.DeniedEvent
    | models.TamperEvent
    | models.LostEvent
)
EventType = Literal["sandbox-state", "exec-exit", "session-end", "denied", "tamper", "lost"]


def event_of(text: str) -> Event | None:
    """`None`: of a kind that only a newer client knows."""
    try:
        return models.Event.model_validate_json(text).root
    except ValidationError:
        return None

"""Examples that TypeScript reads as well: packages/protocol/test/api/golden-models.test.ts."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from libdsec import models
from schemas import SPEC

GOLDEN = json.loads((SPEC / "golden" / "models.json").read_text())


@pytest.mark.parametrize("example", GOLDEN["valid"], ids=lambda example: example["model"])
def test_good_examples_come_back_as_they_were(example: dict[str, Any]) -> None:
    model = getattr(models, example["model"]).model_validate(example["value"])
    assert json.loads(model.model_dump_json(by_alias=True, exclude_none=True)) == example["value"]


@pytest.mark.parametrize(
    "example", GOLDEN["invalid"], ids=lambda example: f"{example['model']}: {example['why']}"
)
def test_bad_examples_are_refused(example: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        getattr(models, example["model"]).model_validate(example["value"])


def test_fields_have_python_names_and_wire_names() -> None:
    spec = models.SandboxSpec(limits=models.SandboxLimits(memory_bytes=1 << 30))
    assert spec.limits is not None and spec.limits.memory_bytes == 1 << 30
    assert spec.model_dump(by_alias=True, exclude_none=True) == {"limits": {"memoryBytes": 1 << 30}}


def test_events_become_the_model_of_their_type() -> None:
    value = {"type": "lost", "cursor": "c", "atMs": 1}
    assert isinstance(models.Event.model_validate(value).root, models.LostEvent)

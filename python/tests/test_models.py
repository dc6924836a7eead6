"""The generated models against the specification that they come from."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from libdsec import models
from schemas import ENUMS, OBJECTS, SCHEMAS, UNIONS, document, fields, wrong_value


def model_of(name: str) -> type[BaseModel]:
    return getattr(models, name)


def round_trip(name: str, value: Any) -> Any:
    model = model_of(name).model_validate(value)
    text = model.model_dump_json(by_alias=True, exclude_none=True)
    return (
        model_of(name)
        .model_validate_json(text)
        .model_dump(mode="json", by_alias=True, exclude_none=True)
    )


def test_the_specification_has_shapes() -> None:
    assert len(OBJECTS) > 50 and len(ENUMS) > 10 and len(UNIONS) > 2


@pytest.mark.parametrize("full", [True, False], ids=["full", "least"])
@pytest.mark.parametrize("name", OBJECTS + UNIONS)
def test_documents_survive_the_way_through_a_model(name: str, full: bool) -> None:
    value = document(SCHEMAS[name], full=full)
    assert round_trip(name, value) == value


@pytest.mark.parametrize("name", OBJECTS)
def test_fields_are_those_of_the_specification(name: str) -> None:
    found = model_of(name).model_fields
    assert {field.alias or key for key, field in found.items()} == set(SCHEMAS[name]["properties"])
    required = {field.alias or key for key, field in found.items() if field.is_required()}
    assert required == set(SCHEMAS[name].get("required", []))


@pytest.mark.parametrize("name", OBJECTS)
def test_what_must_be_there_must_be_there(name: str) -> None:
    least = document(SCHEMAS[name], full=False)
    for field in SCHEMAS[name].get("required", []):
        with pytest.raises(ValidationError):
            model_of(name).model_validate({key: least[key] for key in least if key != field})


@pytest.mark.parametrize(("name", "field"), list(fields()))
def test_a_field_of_another_kind_is_refused(name: str, field: str) -> None:
    value = document(SCHEMAS[name], full=True)
    value[field] = wrong_value(SCHEMAS[name]["properties"][field])
    with pytest.raises(ValidationError):
        model_of(name).model_validate(value)


@pytest.mark.parametrize("name", OBJECTS)
def test_fields_of_a_newer_server_are_passed_over(name: str) -> None:
    value = document(SCHEMAS[name], full=True)
    assert round_trip(name, {**value, "fieldOfTheFuture": {"a": [1]}}) == value


# One that is used inside other models alone has no model of its own.
@pytest.mark.parametrize("name", [name for name in ENUMS if hasattr(models, name)])
def test_enumerations_know_their_words_and_no_other(name: str) -> None:
    model: Any = model_of(name)
    for word in SCHEMAS[name]["enum"]:
        assert model.model_validate(word).root == word
    for word in ["no-such-word", "", None, 1]:
        with pytest.raises(ValidationError):
            model.model_validate(word)

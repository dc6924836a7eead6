"""Secrets of keys, which a server tells once."""

from __future__ import annotations

from libdsec.errors import SecretLostError
from libdsec.models_gen import KeyCreated


def with_secret(created: KeyCreated, done: str) -> KeyCreated:
    """The answer. Raises where it has no secret: the one that told it was lost, and asked for again."""
    if created.secret is not None:
        return created
    key_id = created.key.id
    raise SecretLostError(
        f"the key {key_id} was {done}, but the answer with its secret was lost",
        details={"keyId": key_id},
    )

"""Where replays go, in words: what an approver reads, and what is held against the contract when it is carried out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tieout.contracts import Contract
from tieout.replaying.folder import FILES, target_of


@pytest.mark.parametrize(
    ("to", "words"),
    [
        (None, FILES),
        ({"connection": "outbox", "table": "replays.orders"}, "table replays.orders of connection outbox"),
        ({"connection": "events", "topic": "replays"}, "topic replays of connection events"),
        ({"connection": "events", "topic": "*"}, "their own topics of connection events"),
    ],
)
def test_the_target_in_words(make: Callable[..., Contract], to: dict[str, Any] | None, words: str) -> None:
    """Each of them differs from every other."""
    assert target_of(make(replay={"value": "body", **({"to": to} if to else {})})) == words

"""One answer of a broker's REST interface, and who gives it: the broker, or a copy of what it said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

OK: Final = 200
MISSING: Final = 404
Headers = Sequence[tuple[str, str]]


class AnswerError(Exception):
    """An answer cannot be used: its message says what was expected and found."""


@dataclass(frozen=True)
class Answer:
    """What was said to one question: the status, the head in its own order, and the body."""

    status: int
    headers: Headers
    body: bytes


class Answers(Protocol):
    """Gives answers by the path of a question below `/admin/v2`."""

    def get(self, path: str) -> Answer:
        """Return the answer to that question, whose status is 200 or 404.

        Raises:
            AnswerError: where there is one that cannot be used.
            SourceUnreachableError: where there is none now.
            SourceError: where somebody has to change something before there is one.
        """

    def entries(
        self, path: str, counts: Sequence[tuple[int, int]], /
    ) -> Iterator[tuple[int, int, Sequence[int]]]:
        """Yield each ledger and its count, with which of its entries from 0 to that can be asked for, in their order.

        `path` is the partition's. A broker can be asked for all of them, a copy for those that were copied.

        Raises:
            AnswerError: where they are a link out of a copy.
            SourceError: where a copy cannot be looked into.
        """

    def beyond(self, path: str, counts: Sequence[tuple[int, int]], /) -> Iterator[tuple[int, int]]:
        """Yield the entries that a copy has and the counts do not know, none of a broker.

        Raises:
            AnswerError: where they are a link out of a copy.
            SourceError: where a copy cannot be looked into.
        """

    def close(self) -> None:
        """Let go of what the answers come through."""

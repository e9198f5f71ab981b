"""Answers that were kept: files below a folder, each with the head of its answer, as `curl --include` writes them."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tieout.errors import SourceError
from tieout.pulsar.administration import LARGEST
from tieout.pulsar.answers import MISSING, OK, Answer, AnswerError
from tieout.regular_files import opened_file

_LENGTH: Final = "content-length"
_NO_FILE: Final = (errno.EINVAL, errno.ELOOP, errno.EISDIR)
"""What is said of a pipe, a device, a folder, or a link that leads to itself in the place of an answer."""
_PASSED_ON: Final = re.compile(rb"HTTP/\S+ (?:[13]\d\d\b|200 connection established)", re.IGNORECASE)
"""The head of an answer that another one follows: a redirection (`curl --location`), a proxy's consent."""
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,18}")
"""How a broker writes the number of a ledger or entry."""


@dataclass(frozen=True)
class SavedAnswers:
    """A folder of answers; `at` is where a contract names it, for errors."""

    folder: Path
    at: str

    def get(self, path: str) -> Answer:
        """Return the answer that was kept; one that was not is as if the broker had not known it.

        Raises:
            AnswerError: for a file that holds none, one that was cut off, a link out of the folder, what is no file.
            SourceError: where a file cannot be read.
        """
        if ".." in path.split("/"):
            return Answer(MISSING, (), b"")
        place = self._place(path)
        try:
            with opened_file(place) as file:
                content = file.read(LARGEST + 1)
        except (FileNotFoundError, NotADirectoryError):
            return Answer(MISSING, (), b"")
        except OSError as error:
            if error.errno in _NO_FILE:
                raise AnswerError(f"cannot be read: {error.strerror}") from None
            raise SourceError(f"{self.at}: {path} cannot be read: {error.strerror}") from None
        return _answer(content)

    def entries(
        self, path: str, counts: Sequence[tuple[int, int]], /
    ) -> Iterator[tuple[int, int, list[int]]]:
        """Yield each ledger with those of its entries that the folder has an answer for.

        Raises:
            AnswerError: where they are a link out of the folder.
            SourceError: where the folder cannot be looked into.
        """
        ledgers = set(self._numbers(f"{path}/ledger"))
        for ledger, count in counts:
            found = self._numbers(f"{path}/ledger/{ledger}/entry") if ledger in ledgers else []
            yield ledger, count, sorted(number for number in found if number < count)

    def beyond(self, path: str, counts: Sequence[tuple[int, int]], /) -> Iterator[tuple[int, int]]:
        """Yield the entries that the folder has behind the counted ones of a ledger, or in a newer ledger.

        Raises:
            AnswerError: where they are a link out of the folder.
            SourceError: where the folder cannot be looked into.
        """
        known, newest = dict(counts), counts[-1][0]
        for ledger in self._numbers(f"{path}/ledger"):
            if ledger in known or ledger > newest:
                entries = self._numbers(f"{path}/ledger/{ledger}/entry")
                yield from ((ledger, entry) for entry in entries if entry >= known.get(ledger, 0))

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _numbers(self, path: str) -> list[int]:
        try:
            names = [file.name for file in self._place(path).iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise SourceError(f"{self.at}: {path} cannot be read: {error.strerror}") from None
        return [int(name) for name in names if _NUMBER.fullmatch(name)]

    def _place(self, path: str) -> Path:
        """Return where the folder has what is at that path.

        Raises:
            AnswerError: where it is a link out of the folder.
        """
        place = self.folder / path
        if not Path(os.path.realpath(place)).is_relative_to(os.path.realpath(self.folder)):
            raise AnswerError("expected a file of the folder, found a link out of it; copy what it leads to")
        return place


def _answer(content: bytes) -> Answer:
    r"""Return the answer that a file holds.

    >>> _answer(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n{}")
    Answer(status=200, headers=(('A', 'b'),), body=b'{}')

    Raises:
        AnswerError: where it holds none, or a part of one.
    """
    head, end, body = content.partition(b"\r\n\r\n")
    while body.startswith(b"HTTP/") and _PASSED_ON.match(head):
        head, end, body = body.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    first = lines[0].split(" ", 2)
    if not end or not first[0].startswith("HTTP/") or len(first) < len(("version", "status")):
        raise AnswerError(
            "expected an answer with its head, as curl --include writes it, found none: cut off?"
        )
    if not first[1].isdecimal() or int(first[1]) not in (OK, MISSING):
        raise AnswerError(f"expected an answer of status {OK}, found {first[1][:3]!r}; copy it again")
    headers = tuple(
        (name, value.strip(" \t")) for name, _, value in (line.partition(":") for line in lines[1:])
    )
    length = next((value for name, value in headers if name.lower() == _LENGTH), None)
    if length is not None and length.isdecimal() and int(length) != len(body):
        raise AnswerError(f"expected a body of {length} bytes, found {len(body)}: cut off or changed")
    return Answer(int(first[1]), headers, body)

r"""Records as lines for `kafka-console-producer`, to publish by hand where the contract names no target.

Source: Apache Kafka, `kafka-console-producer --help` and the documentation of its line reader: properties `parse.key`,
`parse.headers` and `null.marker`; tabs separate headers, key and value. A line cannot hold a line break, a tab in a
key, or bytes that are no text: such records are left out and named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tieout.contracts import IDEMPOTENCE_HEADER
from tieout.replaying.planning import Record

NULL: Final = "__tieout_null__"
OPTIONS: Final = f"--property parse.headers=true --property parse.key=true --property null.marker={NULL}"
_NO_VALUE: Final = re.compile(r"[\r\n]")
_NO_KEY: Final = re.compile(r"[\r\n\t]")
_NO_HEADER: Final = re.compile(r"[\r\n\t,:]")


def lines_by_topic(records: Iterable[Record]) -> tuple[dict[str, list[str]], list[Record]]:
    """Return the lines for each topic, in the order of the records, and the records that no line can hold."""
    lines: dict[str, list[str]] = {}
    without_line: list[Record] = []
    for record in records:
        line = line_of(record)
        if line is None:
            without_line.append(record)
        else:
            lines.setdefault(str(record.message.topic), []).append(line)
    return lines, without_line


def line_of(record: Record) -> str | None:
    """Return the record as `headers TAB key TAB value`, or None where a line cannot hold it."""
    body = record.body
    key, value = _text(body.key, _NO_KEY), _text(body.value, _NO_VALUE)
    headers = [(IDEMPOTENCE_HEADER, record.message.key), *body.headers]
    if key is None or value is None or any(_is_unfit(name, text) for name, text in headers):
        return None
    header_text = ",".join(f"{name}:{NULL if text is None else text}" for name, text in headers)
    return f"{header_text}\t{key}\t{value}"


def command(topic: str, file: str) -> str:
    """Return the shell command that publishes a topic's file."""
    return f"kafka-console-producer --bootstrap-server BROKER --topic {_quoted(topic)} {OPTIONS} < {_quoted(file)}"


def _text(content: bytes | None, unfit: re.Pattern[str]) -> str | None:
    """Return bytes as text for a line, the marker for null, or None where a line cannot hold them."""
    if content is None:
        return NULL
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return None if text == NULL or unfit.search(text) else text


def _is_unfit(name: str, text: str | None) -> bool:
    return bool(_NO_HEADER.search(name) or (text is not None and (text == NULL or _NO_HEADER.search(text))))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"

"""Samples a KahaDB journal that no contract describes yet: its queues, and the messages of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tieout.contracts.guessing import POSITION_COLUMNS, LedgerSample
from tieout.engine.sources.kahadb_folders import read_journal
from tieout.engine.sources.small_files import SmallFile
from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.kahadb_journal import Added, Entry
from tieout.engine.systems.openwire import StoredMessage
from tieout.errors import SourceError

_OF_BROKER: Final = ("ActiveMQ.", "DLQ.")
"""Prefixes of the queues that a broker makes itself: dead letters and advice."""
_MOST_QUEUES: Final = 5
_STORED: Final = (
    "concurrent_store_and_dispatch: false is a promise that is not guessed: say it once the broker is told "
    "concurrentStoreAndDispatchQueues=false, and see the ledger cover nothing until then"
)


def journal_messages(
    text: str, place: str, limit: int
) -> tuple[str, list[StoredMessage], tuple[str, ...], int]:
    """Return the journal's queue with most messages, some of these, warnings, and their number.

    Raises:
        SourceError: where no queue is in the journal, or none of its files can be read.
    """
    counts: Counter[str] = Counter()
    kept: dict[str, list[Added]] = {}

    def collect(_: SmallFile, __: int, entries: list[Entry]) -> None:
        for entry in entries:
            if isinstance(entry, Added):
                counts[entry.queue] += 1
                some = kept.setdefault(entry.queue, [])
                if len(some) < limit:
                    some.append(entry)

    journal = read_journal([Path(text)], Path(text).parent, collect)
    names = sorted(counts, key=lambda name: (name.startswith(_OF_BROKER), -counts[name], name))
    if not names:
        problem = journal.faults[0] if journal.faults else "none that was given a message"
        raise SourceError(f"{place} {text}: expected a queue in the journal, found {problem}")
    others = names[1 : 1 + _MOST_QUEUES]
    warnings = (
        *((f"other queues as well: {', '.join(others)}",) if others else ()),
        *journal.faults,
        _STORED,
    )
    return names[0], list(_read(kept[names[0]])), warnings, counts[names[0]]


def properties_of(messages: list[StoredMessage]) -> dict[str, tuple[str, ...]]:
    """Return the values of each property, in the order of first occurrence."""
    found: dict[str, list[str]] = {}
    for message in messages:
        for name, value in message.properties.items():
            found.setdefault(name, []).append(value)
    return {name: tuple(values) for name, values in found.items()}


def journal_positions(text: str, place: str) -> LedgerSample:
    """Return the sample of a ledger of positions: the messages that left the journal's queue.

    Raises:
        SourceError: where no queue is in the journal.
    """
    queue, _, warnings, count = journal_messages(text, place, 0)
    return LedgerSample(
        "", text, (), count, ",", warnings, "kahadb", (("destination", queue),), POSITION_COLUMNS
    )


def _read(entries: list[Added]) -> Iterator[StoredMessage]:
    for entry in entries:
        try:
            yield entry.message()
        except FormatError:
            continue

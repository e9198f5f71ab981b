"""The text that `kafka-dump-log` prints of segment files, decoded: for people who can paste and cannot copy.

The tool prints a line per batch, then with `--print-data-log` or `--deep-iteration` a line per record; before Kafka 2.3
only the records.
Keys and values are printed as text, and their lengths are compared with the printed sizes: a value with a line break,
or one that is not UTF-8, is not what was written, and its line is malformed. Header values are not printed.
Dumps pasted from a terminal are read: lost or added bars before records and blanks are tolerated. Lines that shells and
Java's loggers write in between are skipped.

Source: `kafka.tools.DumpLogSegments` of Apache Kafka 0.8.2 to 4.3; its options are in Kafka's documentation, "Basic
Operations".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tieout.engine.kafka.dump_records import (
    CUT,
    CUT_MARKER,
    RecordLine,
    complete_batch,
    content_of,
    missized,
    record_line,
)
from tieout.engine.kafka.noise import is_cutting, is_noise
from tieout.engine.kafka.records import Batch, Damage, Entry, Record
from tieout.engine.limits import LARGEST, LARGEST_INT, number_in, shown

Place = tuple[str, int]
"""A topic, and the number of a partition."""

_SECTION: Final = re.compile(r"^\s*+Dumping (?P<path>.*)")
_SEGMENT: Final = re.compile(r"(?:^|[/\\])(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d+)[/\\]\d{20}\.log$")
_NAMELESS: Final = re.compile(r"(?:^|[/\\])\d{20}\.log$")
"""A segment that was dumped from within its folder, or outside of it."""
_BATCH: Final = re.compile(r"^\s*baseOffset: ")
_LIKE_A_RECORD: Final = re.compile(r"^\s*+\|?+\s*+offset: \d")
_SET: Final = re.compile(r"^\s*offset: (?P<last>\d+) position: \d+ .*\bsize: \d+ magic: [01] ")
"""The line of a set of messages, as a batch was before Kafka 0.11."""
_IGNORED: Final = re.compile(
    r"^(Log starting offset: |Starting offset: |Snapshot end offset: |Non-(con)?sec\w+ offsets in |Mismatches in :|"
    r"Found (timestamp mismatch|out of order timestamp) in :|The following indexed offsets are not found|"
    r"Indexed offset: |\S+ passed sanity check\.|\S+ is empty\.|Ignoring unknown file |\s|$)"
)
_INVALID: Final = re.compile(r"^\s*+(?P<found>Found \d+ invalid bytes at the end of .*)")
_CONTENT: Final = re.compile(r"^\s*(key|payload): ")
_SKIPPED: Final = re.compile(r"^\s*+\|?+\s*+(?:key|payload): ")
"""What `--skip-record-metadata` leaves of a record's line."""
_FIELD: Final = re.compile(r"\b(\w++): (\S+)")
_NEEDED: Final = frozenset(
    {
        "baseOffset",
        "lastOffset",
        "count",
        "producerId",
        "producerEpoch",
        "partitionLeaderEpoch",
        "isTransactional",
    }
    | {"isControl", "magic", "isvalid"}
)
_TRUE: Final = "true"
_NUMBERS: Final = {
    "baseOffset": LARGEST,
    "lastOffset": LARGEST,
    "count": LARGEST_INT,
    "producerId": LARGEST,
    "producerEpoch": LARGEST_INT,
    "partitionLeaderEpoch": LARGEST_INT,
}
"""The numbers in a batch's line, each with its largest value."""
_UNSIGNED: Final = ("baseOffset", "lastOffset", "count")
_BATCHES_ALONE: Final = (
    "the line of a batch as Kafka 1 prints it without records: let the tool print them with --deep-iteration "
    "--print-data-log"
)
_NO_MESSAGES: Final = (
    "expected the messages of this set below its line, found {}: let the tool print them with --deep-iteration "
    "--print-data-log, and paste the dump whole"
)
_WITHOUT_METADATA: Final = (
    "a record without its offset and its time, as --skip-record-metadata leaves it: "
    "print the dump without this option"
)
_UNRECOGNISED: Final = (
    "expected a line of kafka-dump-log, `baseOffset: …` or `| offset: …`, found another; remove it, "
    "or paste the line whole that it is a part of"
)


@dataclass
class _Open:
    """A batch whose records are still being read; of a set of messages its last offset is all that its line says.

    `skipped` counts the lines of records that the tool was told to print without their metadata.
    """

    line: int
    text: str
    fields: dict[str, str]
    is_set: bool = False
    records: list[Record] = field(default_factory=list)
    malformed: int = 0
    skipped: int = 0
    is_followed: bool = False
    is_bare: bool = False

    @property
    def is_control(self) -> bool:
        """Whether its records are the broker's own."""
        return self.fields["isControl"] == _TRUE

    def entries(self) -> Iterator[Entry]:
        """Give the batch, and damage where it has not as many records as it says."""
        fields, found = self.fields, len(self.records) + self.malformed
        fault = self._set_fault() if self.is_set else self._fault(found)
        if fault is not None:
            yield Damage(self.line, fault, text=self.text)
        last = int(fields["lastOffset"])
        first = min((record.offset for record in self.records), default=last)
        yield Batch(
            place=self.line,
            base_offset=first if self.is_set else int(fields["baseOffset"]),
            last_offset=last,
            leader_epoch=None if self.is_set else int(fields["partitionLeaderEpoch"]),
            producer_id=int(fields["producerId"]),
            producer_epoch=int(fields["producerEpoch"]),
            is_transactional=fields["isTransactional"] == _TRUE,
            is_control=self.is_control,
            is_log_append_time="LogAppendTime" in fields,
            count=len(self.records),
            read=self.records.copy,
        )

    def _fault(self, found: int) -> str | None:
        count = int(self.fields["count"])
        if count in (found, found + self.skipped):
            return None
        hint = (
            f"{found}: lines below this one are missing; paste the dump whole"
            if self.is_followed
            else "none: let the tool print them with --print-data-log"
        )
        return f"expected {self.fields['count']} records, found {hint}"

    def _set_fault(self) -> str | None:
        if not self.records and not self.malformed:
            return _NO_MESSAGES.format("none")
        if self.records and not self.malformed and self.records[-1].offset != int(self.fields["lastOffset"]):
            return _NO_MESSAGES.format(f"the last at offset {self.records[-1].offset}")
        return None


@dataclass(frozen=True)
class Outline:
    """What a dump is of: its partitions, whether batches are below no line that names one, and what is not printed.

    `bare` counts the records that show neither key nor value, although they have one, `noise` the lines that shells and
    loggers wrote. `may_replace` says that no record shows a character that is none of ASCII, as where the tool prints a
    question mark for each: then one that is shown may be another byte.
    """

    places: frozenset[Place]
    has_unplaced: bool
    bare: int
    noise: int = 0
    may_replace: bool = False


def outline_of(lines: Iterable[str]) -> Outline:
    """Return what a dump is of.

    >>> outline_of(["Dumping /data/orders-2/00000000000000000000.log", "Log starting offset: 0"]).places
    frozenset({('orders', 2)})
    """
    places: set[Place] = set()
    is_nameless, has_unplaced = True, False
    bare = noise = 0
    is_ascii, has_mark = True, False
    for line in lines:
        record = record_line(line)
        if record is not None:
            is_ascii, has_mark = is_ascii and record.rest.isascii(), has_mark or "?" in record.rest
        begins = _begins(line, record)
        section = None if begins or record is not None else _SECTION.match(line)
        if section:
            place = _place_in(section["path"].rstrip())
            places |= {place} if place else set()
            is_nameless = place is None and _NAMELESS.search(section["path"].rstrip()) is not None
        has_unplaced = has_unplaced or (is_nameless and begins)
        bare += record is not None and record.is_bare and not record.is_keyless_tombstone
        noise += record is None and not begins and is_noise(line)
    return Outline(frozenset(places), has_unplaced, bare, noise, is_ascii and has_mark)


def batches(lines: Iterable[str], place: Place, default: Place | None) -> Iterator[Entry]:
    """Yield the batches of one partition in a dump, and the damage between them.

    `default` is the partition of lines above any that names a segment, and below one that names it without its folder.
    """
    current = default
    batch: _Open | None = None
    for number, line in enumerate(lines, start=1):
        record = record_line(line)
        section = None if record is not None else _SECTION.match(line)
        begins = _begins(line, record)
        if section or begins:
            yield from batch.entries() if batch else ()
            batch = None
        if section:
            path = section["path"].rstrip()
            is_nameless = _NAMELESS.search(path) is not None
            current = _place_in(path) or (default if is_nameless else None)
        elif current != place or _is_ignored(line, batch):
            continue
        elif begins:
            opened = _opened(number, line, record)
            if isinstance(opened, _Open):
                batch = opened
            else:
                yield opened
        else:
            yield from _added(batch, number, line, record)
    yield from batch.entries() if batch else ()


def _begins(line: str, record: RecordLine | None) -> bool:
    """Return whether the line begins a batch: its own, a set's of messages, or a record's that tells of it."""
    if record is not None:
        return record.is_complete
    return _BATCH.match(line) is not None or _SET.match(line) is not None


def _is_ignored(line: str, batch: _Open | None) -> bool:
    """Return whether the tool prints such a line besides batches and records.

    The missing content of a record is not such a line: the record's line was wrapped.
    """
    is_content = batch is not None and batch.is_bare and _CONTENT.match(line) is not None
    is_dump_line = is_content or any(form.match(line) for form in (_BATCH, _LIKE_A_RECORD, _INVALID))
    return not is_dump_line and (_IGNORED.match(line) is not None or is_noise(line))


def _place_in(path: str) -> Place | None:
    """Return the partition of a segment file; None for an index, a snapshot, or a file without its folder."""
    found = _SEGMENT.search(path)
    number = number_in(found["partition"], LARGEST_INT) if found else None
    return None if found is None or number is None else (found["topic"], number)


def _opened(number: int, line: str, record: RecordLine | None) -> _Open | Batch | Damage:
    """Return the batch that the line begins or, where it tells of its one record as well, is."""
    if record is not None and record.is_complete:
        batch = complete_batch(record, number)
        return batch if isinstance(batch, Batch) else Damage(number, batch, text=line)
    fields = dict(_FIELD.findall(line))
    old = _SET.match(line)
    if old is not None:
        fields = {**_OF_A_SET, **fields, "lastOffset": old["last"]}
    missing = sorted(_NEEDED - fields.keys() - (_NOT_IN_SETS if old else set()))
    if missing == ["count", "isControl"] and "crc" in fields:
        return Damage(number, _BATCHES_ALONE, text=line)
    if missing:
        reason = f"the line of a batch lacks {', '.join(missing)}: it is cut off or wrapped; paste it whole"
        return Damage(number, reason, text=line)
    refused = _refused(fields, is_set=old is not None)
    if refused is not None:
        return Damage(number, refused, text=line)
    return _Open(number, line, fields, is_set=old is not None)


_OF_A_SET: Final = {
    "producerId": "-1",
    "producerEpoch": "-1",
    "isTransactional": "false",
    "isControl": "false",
}
_NOT_IN_SETS: Final = frozenset({"baseOffset", "count", "partitionLeaderEpoch"})


def _refused(fields: Mapping[str, str], *, is_set: bool) -> str | None:
    """Return why a batch cannot be read, from its line alone; None where it can."""
    if fields["magic"] not in (("0", "1") if is_set else ("2",)):
        return f"expected record format 2, found {fields['magic']}"
    if fields["isvalid"] != _TRUE:
        return "the batch's checksum fails, says the dump"
    for name, largest in _NUMBERS.items():
        number = number_in(fields[name], largest) if name in fields else 0
        if number is None or (number < 0 and name in _UNSIGNED):
            return f"{name}: expected a number up to {largest}, found {shown(fields[name])}"
    if not is_set and int(fields["lastOffset"]) < int(fields["baseOffset"]):
        return f"lastOffset: expected {fields['baseOffset']} or more, found {fields['lastOffset']}"
    return None


def _added(batch: _Open | None, number: int, line: str, record: RecordLine | None) -> Iterator[Damage]:
    """Add the line's record to the batch, or give the damage that the line is."""
    is_like_one = _LIKE_A_RECORD.match(line) is not None
    content = None
    if batch is not None:
        batch.is_followed = True
        is_read = record is not None and record.fault is None
        content = content_of(record, is_control=batch.is_control) if record is not None and is_read else None
        batch.malformed += is_like_one and content is None
        if record is None and not batch.records and not batch.malformed and _SKIPPED.match(line):
            batch.skipped += 1
            yield Damage(number, _WITHOUT_METADATA, text=line)
            return
    if batch is None or record is None or content is None:
        yield Damage(number, _reason(line, record, batch), text=line)
        return
    batch.is_bare = content == (None, None)
    batch.records.append(record.record(content))


def _reason(line: str, record: RecordLine | None, batch: _Open | None) -> str:
    """Return what is wrong with a line that adds no record to its batch."""
    if record is None:
        return _unlike(line)
    if record.fault is not None:
        return record.fault
    if batch is None:
        return "a record without the line of its batch, `baseOffset: …`, above it; paste the dump whole"
    return CUT_MARKER if batch.is_control else missized(record)


def _unlike(line: str) -> str:
    """Return what a line is that is not a record's from its beginning to its end."""
    invalid = _INVALID.match(line)
    if invalid is not None:
        return f"{invalid['found'].rstrip()}: a batch that is cut off, or a stretch that is none"
    if is_cutting(line):
        return "the command leaves out a part of the dump; print all of it"
    return CUT if _LIKE_A_RECORD.match(line) else _UNRECOGNISED

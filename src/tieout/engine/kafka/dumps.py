"""The text that `kafka-dump-log` prints of segment files, decoded: for people who can paste and cannot copy.

A line for each batch, then one for each of its records, if the tool was told `--print-data-log` or `--deep-iteration`.
Keys and values are printed as text, so the sizes beside them are held against what is there: a value with a line break,
or one that is not UTF-8, is not what was written, and its line is malformed. Header values are not printed at all.
What pasting takes away or adds around a line, the bar before a record and blanks, makes no difference.

Source: `kafka.tools.DumpLogSegments` of Apache Kafka 4.3; its options are in Kafka's documentation, "Basic Operations".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tieout.engine.kafka.records import Batch, Damage, Entry, Record

Place = tuple[str, int]
"""A topic, and the number of a partition."""

_SECTION: Final = re.compile(r"^\s*Dumping (?P<path>.*?)\s*$")
_SEGMENT: Final = re.compile(r"(?:^|[/\\])(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d+)[/\\]\d{20}\.log$")
_NAMELESS: Final = re.compile(r"(?:^|[/\\])\d{20}\.log$")
"""A segment that was dumped from within its folder, or outside of it."""
_BATCH: Final = re.compile(r"^\s*baseOffset: ")
_LIKE_A_RECORD: Final = re.compile(r"^\s*\|?\s*offset: \d")
_OLD_RECORD: Final = re.compile(r"^\s*offset: \d+ position: \d+ ")
_PASSED_OVER: Final = re.compile(
    r"^(Log starting offset: |Starting offset: |Non-consecutive offsets in |\s|$)"
)
_INVALID: Final = re.compile(r"^\s*(?P<found>Found \d+ invalid bytes at the end of .*?)\s*$")
_CONTENT: Final = re.compile(r"^\s*(key|payload): ")
_FIELD: Final = re.compile(r"(\w+): (\S+)")
_RECORD: Final = re.compile(
    r"^\s*\|?\s*offset: (?P<offset>\d+) (?:isValid: \w+ )?(?P<kind>CreateTime|LogAppendTime): (?P<time>-?\d+) "
    r"key[sS]ize: (?P<key>-?\d+) value[sS]ize: (?P<value>-?\d+) sequence: (?P<sequence>-?\d+) "
    r"headerKeys: \[.*?\](?:\s(?P<rest>.*))?$"
)
_MARKER: Final = re.compile(r"^endTxnMarker: (?P<kind>COMMIT|ABORT) coordinatorEpoch: (?P<epoch>-?\d+)\s*$")
_OTHER_CONTROL: Final = re.compile(r"^(?!endTxnMarker)\w+: ")
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
_SEGMENTS: Final = "read the segment itself with kind: kafka_segments"
_STRAY: Final = (
    "expected a line of kafka-dump-log, `baseOffset: …` or `| offset: …`, found another; remove it, "
    "or paste the line whole that it is a part of"
)


@dataclass
class _Open:
    """A batch whose records are still being read."""

    line: int
    text: str
    fields: dict[str, str]
    records: list[Record] = field(default_factory=list)
    malformed: int = 0
    is_followed: bool = False
    is_bare: bool = False

    @property
    def is_control(self) -> bool:
        """Whether its records are the broker's own."""
        return self.fields["isControl"] == _TRUE

    def entries(self) -> Iterator[Entry]:
        """Give the batch, and damage where it has not as many records as it says."""
        fields, found = self.fields, len(self.records) + self.malformed
        if found != int(fields["count"]):
            hint = (
                f"{found}: lines below this one are missing; paste the dump whole"
                if self.is_followed
                else "none: let the tool print them with --print-data-log"
            )
            yield Damage(self.line, f"expected {fields['count']} records, found {hint}", text=self.text)
        yield Batch(
            place=self.line,
            base_offset=int(fields["baseOffset"]),
            last_offset=int(fields["lastOffset"]),
            leader_epoch=int(fields["partitionLeaderEpoch"]),
            producer_id=int(fields["producerId"]),
            producer_epoch=int(fields["producerEpoch"]),
            is_transactional=fields["isTransactional"] == _TRUE,
            is_control=self.is_control,
            is_log_append_time="LogAppendTime" in fields,
            count=len(self.records),
            read=self.records.copy,
        )


@dataclass(frozen=True)
class Outline:
    """What a dump is of: its partitions, whether batches are below no line that names one, and what is not printed.

    `bare` counts the records that show neither key nor value, although they have one.
    """

    places: frozenset[Place]
    has_unplaced: bool
    bare: int


def outline_of(lines: Iterable[str]) -> Outline:
    """Return what a dump is of.

    >>> outline_of(["Dumping /data/orders-2/00000000000000000000.log", "Log starting offset: 0"]).places
    frozenset({('orders', 2)})
    """
    places: set[Place] = set()
    is_nameless, has_unplaced = True, False
    bare = 0
    for line in lines:
        section = _SECTION.match(line)
        if section:
            place = _place_in(section["path"])
            places |= {place} if place else set()
            is_nameless = place is None and _NAMELESS.search(section["path"]) is not None
        has_unplaced = has_unplaced or (is_nameless and _BATCH.match(line) is not None)
        record = _RECORD.match(line)
        bare += (
            record is not None
            and not (record["rest"] or "").strip()
            and (int(record["key"]) >= 0 or int(record["value"]) >= 0)
        )
    return Outline(frozenset(places), has_unplaced, bare)


def batches(lines: Iterable[str], place: Place, default: Place | None) -> Iterator[Entry]:
    """Yield the batches that a dump shows of one partition, and what in it is none.

    `default` is the partition of lines above any that names a segment, and below one that names it without its folder.
    """
    current = default
    batch: _Open | None = None
    for number, line in enumerate(lines, start=1):
        section = _SECTION.match(line)
        is_batch = _BATCH.match(line) is not None
        if section or is_batch:
            yield from batch.entries() if batch else ()
            batch = None
        if section:
            is_nameless = _NAMELESS.search(section["path"]) is not None
            current = _place_in(section["path"]) or (default if is_nameless else None)
        elif current != place or _is_passed_over(line, batch):
            continue
        elif is_batch:
            opened = _opened(number, line)
            if isinstance(opened, Damage):
                yield opened
            else:
                batch = opened
        else:
            yield from _added(batch, number, line)
    yield from batch.entries() if batch else ()


def _is_passed_over(line: str, batch: _Open | None) -> bool:
    """Return whether the tool prints such a line beside batches and records.

    What a record without content lacks is none of them: the record's line was wrapped.
    """
    is_content = batch is not None and batch.is_bare and _CONTENT.match(line) is not None
    is_told = is_content or any(form.match(line) for form in (_BATCH, _LIKE_A_RECORD, _INVALID))
    return not is_told and _PASSED_OVER.match(line) is not None


def _place_in(path: str) -> Place | None:
    """Return the partition of a segment file; None for an index, a snapshot, or a file without its folder."""
    found = _SEGMENT.search(path)
    return (found["topic"], int(found["partition"])) if found else None


def _opened(number: int, line: str) -> _Open | Damage:
    fields = dict(_FIELD.findall(line))
    missing = sorted(_NEEDED - fields.keys())
    if missing:
        reason = f"the line of a batch lacks {', '.join(missing)}: it is cut off or wrapped; paste it whole"
        return Damage(number, reason, text=line)
    if fields["magic"] != "2":
        return Damage(
            number, f"expected record format 2, found {fields['magic']}, written before Kafka 0.11", text=line
        )
    if fields["isvalid"] != _TRUE:
        return Damage(number, "the batch's checksum fails, says the dump", text=line)
    try:
        for name in (
            "baseOffset",
            "lastOffset",
            "count",
            "producerId",
            "producerEpoch",
            "partitionLeaderEpoch",
        ):
            int(fields[name])
    except ValueError:
        return Damage(number, f"{name}: expected a number, found {fields[name]}", text=line)
    return _Open(number, line, fields)


def _added(batch: _Open | None, number: int, line: str) -> Iterator[Damage]:
    """Add the line's record to the batch, or give the damage that the line is."""
    found, is_like_one = _RECORD.match(line), _LIKE_A_RECORD.match(line) is not None
    content = None
    if batch is not None:
        batch.is_followed = True
        content = None if found is None else _content(found, is_control=batch.is_control)
        batch.malformed += is_like_one and content is None
    if batch is None or found is None or content is None:
        yield Damage(number, _reason(line, found, batch), text=line)
        return
    key, value = content
    batch.is_bare = content == (None, None)
    offset, time, sequence = int(found["offset"]), int(found["time"]), int(found["sequence"])
    batch.records.append(Record(offset, time, sequence, key, value))


def _reason(line: str, found: re.Match[str] | None, batch: _Open | None) -> str:
    """Return what is wrong with a line that adds no record to its batch."""
    if found is None:
        return _unlike(line)
    if batch is None:
        return "a record without the line of its batch, `baseOffset: …`, above it; paste the dump whole"
    if batch.is_control:
        return "a control record without what it decides: the line is cut off or wrapped; paste it whole"
    return _missized(found)


def _unlike(line: str) -> str:
    """Return what a line is that is not a record's from its beginning to its end."""
    invalid = _INVALID.match(line)
    if invalid is not None:
        return f"{invalid['found']}: a batch that is cut off, or a stretch that is none"
    if _OLD_RECORD.match(line):
        return "a record as an old kafka-dump-log prints it; print it with that of Kafka 3 or newer"
    if _LIKE_A_RECORD.match(line):
        return "the line of a record is cut off or wrapped; paste it whole"
    return _STRAY


def _missized(found: re.Match[str]) -> str:
    """Return what is wrong with a record whose key and value are not as long as its line says."""
    sizes = [max(0, int(found[name])) for name in ("key", "value")]
    expected = f"key and value: expected {sizes[0]} and {sizes[1]} bytes, found"
    names = (b"key: " if int(found["key"]) >= 0 else b"", b"payload: " if int(found["value"]) >= 0 else b"")
    if len((found["rest"] or "").encode()) < sum(sizes) + len(b" ".join(filter(None, names))):
        return (
            f"{expected} fewer: the line was cut off, or a line break in the value ended it; "
            f"paste it whole, or {_SEGMENTS}"
        )
    return f"{expected} others: what is no text is not printed as it was; {_SEGMENTS}"


def _content(found: re.Match[str], *, is_control: bool) -> tuple[bytes | None, bytes | None] | None:
    """Return a record's key and value, or None where they are not as long as the line says.

    Without `--print-data-log` the line says nothing of either.
    """
    rest = (found["rest"] or "").encode()
    if is_control:
        return _marker(rest.decode())
    if not rest.strip():
        return None, None
    key = value = None
    sizes = int(found["key"]), int(found["value"])
    if sizes[0] >= 0:
        key, rest = _taken(b"key: ", rest, sizes[0])
    if sizes[1] >= 0:
        value, rest = _taken(b"payload: ", rest.removeprefix(b" ") if key is not None else rest, sizes[1])
    is_whole = (
        not rest.strip() and (key is not None) == (sizes[0] >= 0) and (value is not None) == (sizes[1] >= 0)
    )
    return (key, value) if is_whole else None


def _taken(name: bytes, rest: bytes, size: int) -> tuple[bytes | None, bytes]:
    """Return the named bytes and what follows them, or None and all of it where they are not there."""
    start = len(name)
    if not rest.startswith(name) or len(rest) < start + size:
        return None, rest
    return rest[start : start + size], rest[start + size :]


def _marker(rest: str) -> tuple[bytes, bytes | None] | None:
    """Return a control record's key and value as the log holds them, or None where its line is not whole.

    A type that ends no transaction is -1.
    """
    found = _MARKER.match(rest)
    if found is None:
        return (struct.pack(">hh", 0, -1), None) if _OTHER_CONTROL.match(rest) else None
    return struct.pack(">hh", 0, found["kind"] == "COMMIT"), struct.pack(">hi", 0, int(found["epoch"]))

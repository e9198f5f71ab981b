"""Lines of records in what Kafka's log dumper prints, of every version from 0.8 on.

Since Kafka 2.3 a record stands below the line of its batch. Before, in dumps that show records, each line is complete:

    offset: 7 position: 0 CreateTime: 1700000000000 isvalid: true keysize: 1 valuesize: 2 magic: 2 … key: k payload: v
    offset: 7 position: 0 CreateTime: 1700000000000 isvalid: true payloadsize: 2 magic: 1 … keysize: 1 key: k payload: v

the second form until 0.10, without a time before 0.10.2. Keys and values are printed as text, and their lengths are
compared with the printed sizes.

Source: `kafka.tools.DumpLogSegments` of Apache Kafka 0.8.2 to 4.3.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tieout.engine.kafka.records import Batch, Record
from tieout.engine.limits import EXPECTED_TIME, LARGEST_INT, is_time, number_in

_BEGIN: Final = re.compile(r"^\s*+\|?+\s*+(?=offset: \d)")
_TODAY: Final = re.compile(
    r"^\s*+\|?+\s*+offset: (?P<offset>\d{1,18}) (?P<kind>CreateTime|LogAppendTime): (?P<time>-?\d{1,18}) "
    r"key[sS]ize: (?P<key>-?\d{1,9}) value[sS]ize: (?P<value>-?\d{1,9}) sequence: (?P<sequence>-?\d{1,9}) "
    r"headerKeys: \[.*?\](?:\s+(?P<rest>.*))?$"
)
"""The form since Kafka 3, all at once: most lines of most dumps."""
_FIELD: Final = re.compile(
    r"\s*(?P<name>offset|position|CreateTime|LogAppendTime|NoTimestampType|isvalid|isValid|crc|payloadsize|keysize|keySize|"
    r"valuesize|valueSize|magic|compresscodec|compressType|producerId|producerEpoch|sequence|isTransactional|baseOffset|"
    r"lastOffset|baseSequence|lastSequence|partitionLeaderEpoch|batchSize|size): (?P<value>\S+)(?=\s|$)"
)
_HEADER_KEYS: Final = re.compile(r"\s*headerKeys: \[.*?\](?=\s|$)")
_MARKER: Final = re.compile(r"^endTxnMarker: (?P<kind>COMMIT|ABORT) coordinatorEpoch: (?P<epoch>-?\d+)\s*$")
_OTHER_CONTROL: Final = re.compile(r"^(?!endTxnMarker)\w+: ")
_INTEGER: Final = re.compile(r"^-?\d{1,18}$")
_NUMBERS: Final = ("offset", "time", "key", "value", "sequence", "producerId", "producerEpoch")
_UNCOMPRESSED: Final = frozenset({"none", "nocompressioncodec"})
_TRUE: Final = "true"
SEGMENTS: Final = "read the segment itself with kind: kafka_segments"
CUT: Final = "the line of a record is cut off or wrapped; paste it whole"
CUT_MARKER: Final = "a control record without what it decides: the line is cut off or wrapped; paste it whole"
_COMPRESSED: Final = (
    "a compressed set of messages without its messages: let the tool print them with --deep-iteration"
)
_FAILS: Final = "the record's checksum fails, says the dump"

Content = tuple[bytes | None, bytes | None]
"""A key and a value."""


@dataclass(frozen=True)
class RecordLine:
    """The fields of a record's line before its content, by their current names; `rest` is the content.

    `is_complete` says that the line tells of its batch as well, so that no other line has to, `is_timeless` that it
    prints no time.
    """

    fields: Mapping[str, str]
    rest: str
    is_complete: bool
    is_timeless: bool = False

    @property
    def sizes(self) -> tuple[int, int]:
        """The bytes of key and value, -1 where there is none."""
        return int(self.fields["key"]), int(self.fields["value"])

    @property
    def is_bare(self) -> bool:
        """Whether the line shows neither key nor value, although there is one."""
        return not self.rest.strip() and max(self.sizes) >= 0 and not self.is_marker

    @property
    def is_keyless_tombstone(self) -> bool:
        """Whether the line shows no key because there is no value, as Kafka prints it until 2.2."""
        return self.is_complete and self.sizes[1] < 0

    @property
    def is_marker(self) -> bool:
        """Whether a line that tells of its batch is a marker: nothing else in a transaction lacks a sequence."""
        return self.fields.get("isTransactional") == _TRUE and self.fields["sequence"] == "-1"

    @property
    def fault(self) -> str | None:
        """Why a ledger cannot have the line's record, whatever its content; None where it can."""
        if self.is_timeless or is_time(int(self.fields["time"])):
            return None
        return (
            f"record_timestamp: expected {EXPECTED_TIME}, found {self.fields['time']} milliseconds since 1970"
        )

    def record(self, content: Content) -> Record:
        """Return the record with this content."""
        time = None if self.is_timeless else int(self.fields["time"])
        return Record(
            offset=int(self.fields["offset"]),
            timestamp_ms=time,
            sequence=int(self.fields["sequence"]),
            key=content[0],
            value=content[1],
            is_unprinted=self.is_bare,
        )


def record_line(line: str) -> RecordLine | None:
    """Return the parsed line of a record; None where it is not one, or is cut off.

    >>> record_line("| offset: 0 CreateTime: 5 keySize: -1 valueSize: 1 sequence: 0 headerKeys: [] payload: v").rest
    'payload: v'
    """
    today = _TODAY.match(line)
    if today is not None:
        return RecordLine(today.groupdict(), today["rest"] or "", is_complete=False)
    begin = _BEGIN.match(line)
    if begin is None:
        return None
    fields: dict[str, str] = {}
    place, has_headers = begin.end(), False
    while found := _FIELD.match(line, place) or _HEADER_KEYS.match(line, place):
        place = found.end()
        if found.re is _HEADER_KEYS:
            has_headers = True
        else:
            fields.setdefault(found["name"], found["value"])
    is_complete = "compresscodec" in fields and "|" not in line[: begin.end()]
    named = _named(fields)
    is_whole = (has_headers and "sequence" in fields) or "crc" in fields
    if named is None or not is_whole or (is_complete and "magic" not in fields):
        return None
    is_timeless = "CreateTime" not in fields and "LogAppendTime" not in fields
    return RecordLine(named, line[place:].lstrip(" "), is_complete, is_timeless)


def _named(fields: Mapping[str, str]) -> dict[str, str] | None:
    """Return the fields under the names of today, None where one is missing or no number."""
    time = next((fields[name] for name in ("CreateTime", "LogAppendTime") if name in fields), "-1")
    value = fields.get("valueSize", fields.get("valuesize", fields.get("payloadsize")))
    key = fields.get("keySize", fields.get("keysize", "-1" if "payloadsize" in fields else None))
    if key is None or value is None:
        return None
    none = {"sequence": "-1", "producerId": "-1", "producerEpoch": "-1"}
    named = {**none, **fields, "time": time, "key": key, "value": value}
    return named if all(_INTEGER.match(named[name]) for name in _NUMBERS) else None


def complete_batch(line: RecordLine, number: int) -> Batch | str:
    """Return the batch of one record that a complete line is, or what is wrong with the line."""
    fields = line.fields
    if fields.get("isvalid") != _TRUE:
        return _FAILS
    if "payloadsize" in fields and fields["compresscodec"].lower() not in _UNCOMPRESSED:
        return _COMPRESSED
    untimely = line.fault
    if untimely is not None:
        return untimely
    if number_in(fields["producerEpoch"], LARGEST_INT) is None:
        return f"producerEpoch: expected a number up to {LARGEST_INT}, found {fields['producerEpoch']}"
    is_control = line.is_marker or line.rest.startswith(("endTxnMarker: ", "controlType: "))
    content = content_of(line, is_control=is_control)
    if content is None:
        return CUT_MARKER if is_control else missized(line)
    record = line.record(content)
    return Batch(
        place=number,
        base_offset=record.offset,
        last_offset=record.offset,
        leader_epoch=None,
        producer_id=int(fields["producerId"]),
        producer_epoch=int(fields["producerEpoch"]),
        is_transactional=fields.get("isTransactional") == _TRUE,
        is_control=is_control,
        is_log_append_time="LogAppendTime" in fields,
        count=1,
        read=lambda: (record,),
    )


def missized(line: RecordLine) -> str:
    """Return what is wrong with a record whose key and value are not as long as its line says."""
    sizes = [max(0, size) for size in line.sizes]
    expected = f"key and value: expected {sizes[0]} and {sizes[1]} bytes, found"
    names = (b"key: " if line.sizes[0] >= 0 else b"", b"payload: " if line.sizes[1] >= 0 else b"")
    if len(line.rest.encode()) < sum(sizes) + len(b" ".join(filter(None, names))):
        return (
            f"{expected} fewer: the line was cut off, or a line break in the value ended it; "
            f"paste it whole, or {SEGMENTS}"
        )
    return f"{expected} others: what is no text is not printed as it was; {SEGMENTS}"


def content_of(line: RecordLine, *, is_control: bool) -> Content | None:
    """Return a record's key and value, or None where they are not as long as the line says.

    Without `--print-data-log` the line says nothing of either. Kafka 0.8 prints a value that is not there as `null`.
    """
    remainder = line.rest.encode()
    if is_control:
        return _marker(line.rest)
    if not remainder.strip():
        return None, None
    key = value = None
    sizes = line.sizes
    if sizes[0] >= 0:
        key, remainder = _field_and_remainder(b"key: ", remainder, sizes[0])
    remainder = remainder.removeprefix(b" ") if key is not None else remainder
    if sizes[1] >= 0:
        value, remainder = _field_and_remainder(b"payload: ", remainder, sizes[1])
    elif line.is_complete:
        remainder = remainder.removeprefix(b"payload: null")
    is_whole = (
        not remainder.strip()
        and (key is not None) == (sizes[0] >= 0)
        and (value is not None) == (sizes[1] >= 0)
    )
    return (key, value) if is_whole else None


def _field_and_remainder(name: bytes, remainder: bytes, size: int) -> tuple[bytes | None, bytes]:
    """Return the named bytes and what follows them, or None and all of it where they are not there."""
    start = len(name)
    if not remainder.startswith(name) or len(remainder) < start + size:
        return None, remainder
    return remainder[start : start + size], remainder[start + size :]


def _marker(remainder: str) -> Content | None:
    """Return a control record's key and value as the log holds them, or None where its line is not whole.

    A type that ends no transaction is -1.
    """
    found = _MARKER.match(remainder)
    if found is None:
        return (struct.pack(">hh", 0, -1), None) if _OTHER_CONTROL.match(remainder) else None
    epoch = number_in(found["epoch"], LARGEST_INT)
    if epoch is None:
        return None
    return struct.pack(">hh", 0, found["kind"] == "COMMIT"), struct.pack(">hi", 0, epoch)

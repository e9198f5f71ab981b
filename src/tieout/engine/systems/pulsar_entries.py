"""Parses Pulsar's entries in answers of its REST interface: the headers describe the entry, the body has its messages.

An entry is one message, or a batch of messages, each with its own metadata. The broker has already decompressed it. A
message outside a batch has its key and properties in headers, in Latin-1: the web server writes a blank for any other
character, so a text with a blank is ambiguous, and blanks at its ends are lost.

Source: `PersistentTopicsBase.generateResponseWithEntry`, `PulsarApi.proto` (`SingleMessageMetadata`) and
`MarkerType` of apache/pulsar, branch 3.0.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from tieout.engine.limits import number_in
from tieout.engine.systems.json_texts import FormatError
from tieout.pulsar.answers import Answer

COMMITTED, ABORTED = 21, 22
"""The types of the markers that end a transaction."""
_PREFIX: Final = "x-pulsar-"
_PROPERTY: Final = "x-pulsar-property-"
_ENTRY_LEVEL: Final = ("x-pulsar-property-total-chunks", "x-pulsar-property-chunk-id")
"""Headers of a chunk that look like properties."""
_BLANK: Final = " "
_LENGTH_BYTES: Final = 4
_MOST_NUMBER: Final = (1 << 64) - 1
_PROPERTIES, _KEY, _SIZE, _EVENT_TIME, _KEY_BASE64, _SEQUENCE, _NULL_VALUE, _NULL_KEY = (
    1,
    2,
    3,
    5,
    6,
    8,
    9,
    10,
)
"""Field numbers of a message in a batch."""

TransactionId = tuple[int, int]
"""The most and least significant half, which Pulsar prints as `(most,least)`."""
_Fields = dict[int, list[int | bytes]]


@dataclass(frozen=True)
class Message:
    """One message of an entry, with its index in the batch; an unknown property is None."""

    batch: int
    sequence: int | None
    key: bytes | None
    value: bytes | None
    properties: Mapping[str, str | None]
    event_time: datetime | None
    has_unknown_key: bool = False


@dataclass(frozen=True)
class Entry:
    """An entry: the fields common to its messages, and the broker's view of its transaction."""

    producer: str | None
    published_at: datetime | None
    stored_at: datetime | None
    transaction: TransactionId | None
    marker: int | None
    is_aborted: bool
    is_uncommitted: bool
    messages: Sequence[Message]


def entry_in(answer: Answer) -> Entry:
    """Return the entry in an answer.

    Raises:
        FormatError: if the answer is not Pulsar's, the entry is encrypted or a chunk of a larger message, or its
            messages cannot be separated.
    """
    headers = {name.lower(): value for name, value in answer.headers}
    if "x-pulsar-publish-time" not in headers:
        raise FormatError("expected an entry with the header X-Pulsar-publish-time, found another answer")
    if headers.get("x-pulsar-is-encrypted", "false") != "false" or "x-pulsar-encryption-algo" in headers:
        raise FormatError("expected a body that the broker can read, found an encrypted one")
    if _number(headers, "num-chunks-from-msg", 1) > 1:
        raise FormatError(
            "expected a whole message, found a chunk of one (chunkingEnabled), which is not read"
        )
    marker = headers.get("x-pulsar-marker-type")
    return Entry(
        producer=headers.get("x-pulsar-producer-name"),
        published_at=_time(headers["x-pulsar-publish-time"]),
        stored_at=_time(headers.get("x-pulsar-broker-entry-metadata-timestamp")),
        transaction=_transaction(headers),
        marker=None if marker is None else _number(headers, "marker-type", 0),
        is_aborted=headers.get("x-pulsar-txn-aborted") == "true",
        is_uncommitted=headers.get("x-pulsar-txn-uncommitted") == "true",
        messages=() if marker is not None else tuple(_messages(answer, headers)),
    )


def _messages(answer: Answer, headers: Mapping[str, str]) -> Iterator[Message]:
    if "x-pulsar-num-batch-message" in headers:
        yield from _batched(answer.body, _number(headers, "num-batch-message", 0))
        return
    properties = {
        name[len(_PROPERTY) :]: None if _BLANK in value else value
        for name, value in answer.headers
        if name.lower().startswith(_PROPERTY) and name.lower() not in _ENTRY_LEVEL
    }
    is_encoded = headers.get("x-pulsar-partition-key-b64-encoded") == "true"
    is_null = headers.get("x-pulsar-null-value") == "true"
    has_key = headers.get("x-pulsar-null-partition-key") != "true" and "x-pulsar-partition-key" in headers
    key = headers["x-pulsar-partition-key"] if has_key else None
    is_unknown = key is not None and _BLANK in key
    yield Message(
        batch=0,
        sequence=number_in(headers.get("x-pulsar-sequence-id", "")),
        key=None if key is None or is_unknown else _key(key.encode(), is_encoded),
        value=None if is_null else answer.body,
        properties=properties,
        event_time=_time(headers.get("x-pulsar-event-time")),
        has_unknown_key=is_unknown,
    )


def _batched(body: bytes, count: int) -> Iterator[Message]:
    """Yield the messages of a batch: each has the length of its metadata, the metadata, and the payload.

    Raises:
        FormatError: if there are more or fewer than `count`.
    """
    at = 0
    for batch in range(count):
        start = at + _LENGTH_BYTES
        length = int.from_bytes(body[at:start], "big")
        if start + length > len(body):
            raise FormatError(f"message {batch} of a batch of {count} is cut off")
        fields = _fields(body[start : start + length])
        at = start + length + _integer(fields, _SIZE)
        if at > len(body):
            raise FormatError(f"message {batch} of a batch of {count} is cut off")
        yield _message(batch, fields, body[start + length : at])
    if at != len(body):
        raise FormatError(f"expected a batch of {count} messages, found {len(body) - at} bytes behind them")


def _message(batch: int, fields: _Fields, payload: bytes) -> Message:
    pairs = [_fields(pair) for pair in fields.get(_PROPERTIES, []) if isinstance(pair, bytes)]
    key = None if _integer(fields, _NULL_KEY) else _bytes(fields, _KEY)
    event = _integer(fields, _EVENT_TIME)
    return Message(
        batch=batch,
        sequence=_integer(fields, _SEQUENCE) if _SEQUENCE in fields else None,
        key=None if key is None else _key(key, bool(_integer(fields, _KEY_BASE64))),
        value=None if _integer(fields, _NULL_VALUE) else payload,
        properties={_utf8(_bytes(pair, 1)): _utf8(_bytes(pair, 2)) for pair in pairs},
        event_time=_of_millis(event) if event else None,
    )


def _fields(data: bytes) -> _Fields:
    """Return the values of a Protocol Buffers message by field number: whole numbers and byte strings.

    >>> _fields(bytes.fromhex("12026b301812"))
    {2: [b'k0'], 3: [18]}

    Raises:
        FormatError: if it is cut off, or has other types.
    """
    fields: _Fields = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        value, at = _varint(data, at)
        if tag & 7 == 0:
            fields.setdefault(tag >> 3, []).append(value)
        elif tag & 7 == 2:
            if at + value > len(data):
                raise FormatError("a message's metadata is cut off")
            fields.setdefault(tag >> 3, []).append(data[at : at + value])
            at += value
        else:
            raise FormatError(
                f"a message's metadata has a field of the wire type {tag & 7}, which is not known"
            )
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and value <= _MOST_NUMBER:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 1 << 7:
            return value, at
    raise FormatError("a message's metadata is cut off")


def _integer(fields: _Fields, number: int) -> int:
    value = fields.get(number, [0])[-1]
    return value if isinstance(value, int) else 0


def _bytes(fields: _Fields, number: int) -> bytes | None:
    value = fields.get(number, [None])[-1] if number in fields else None
    return value if isinstance(value, bytes) else None


def _utf8(text: bytes | None) -> str:
    try:
        return (text or b"").decode()
    except UnicodeDecodeError:
        raise FormatError("expected properties in UTF-8, found another") from None


def _key(key: bytes, is_encoded: bool) -> bytes:
    """Return the bytes of a key.

    Raises:
        FormatError: if it is declared as base 64, and is not.
    """
    if not is_encoded:
        return key
    try:
        return base64.b64decode(key, validate=True)
    except binascii.Error:
        raise FormatError("expected a key in base 64, found another") from None


def _transaction(headers: Mapping[str, str]) -> TransactionId | None:
    if f"{_PREFIX}txnid-most-bits" not in headers:
        return None
    return _number(headers, "txnid-most-bits", 0), _number(headers, "txnid-least-bits", 0)


def _number(headers: Mapping[str, str], name: str, default: int) -> int:
    """Return the number in a header.

    Raises:
        FormatError: if it is not a number.
    """
    text = headers.get(_PREFIX + name)
    number = default if text is None else number_in(text)
    if number is None:
        raise FormatError(f"expected a number in the header X-Pulsar-{name}, found none")
    return number


def _time(text: str | None) -> datetime | None:
    """Return the time in a header, None if it is missing or invalid.

    >>> _time("2026-11-26T21:21:12.66Z").isoformat(), _time("yesterday")
    ('2026-11-26T21:21:12.660000+00:00', None)
    """
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time.astimezone(UTC) if time.tzinfo is not None else None


def _of_millis(millis: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(millis / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return None

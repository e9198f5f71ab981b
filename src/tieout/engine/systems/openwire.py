"""Parses OpenWire as stored by KahaDB: the messages and acknowledgements of a broker's journal.

A store uses loose encoding without a cache, whatever protocol its clients use. Only the fields for evidence are read:
of a message its identity, times, properties and body, of an acknowledgement its type and consumer.

Source: `org.apache.activemq.openwire.v12` and `MarshallingSupport` of Apache ActiveMQ 6.3 (activemq-client).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tieout.engine.systems.data_input import DataInput
from tieout.engine.systems.json_texts import FormatError

MOST_BODY: Final = 64 << 20
"""The most bytes of an inflated body."""
_ACK: Final = 22
_MESSAGE, _BYTES, _TEXT = 23, 24, 28
_MESSAGES: Final = range(_MESSAGE, 30)
ACK_TYPES: Final[Mapping[int, str]] = {
    0: "DELIVERED",
    1: "POISON",
    2: "STANDARD",
    3: "REDELIVERED",
    4: "INDIVIDUAL",
    5: "UNMATCHED",
    6: "EXPIRED",
}
_DESTINATIONS: Final[Mapping[int, str]] = {
    100: "queue://",
    101: "topic://",
    102: "temp-queue://",
    103: "temp-topic://",
}
_MESSAGE_ID, _LOCAL, _XA, _PRODUCER, _CONSUMER, _CONNECTION, _BROKER = 110, 111, 112, 123, 122, 120, 124
_DEEPEST: Final = 4


@dataclass(frozen=True)
class Acknowledgement:
    """An acknowledgement: its type by ActiveMQ's name, and the consumer, None if the broker gave it."""

    kind: str
    consumer: str | None


@dataclass(frozen=True)
class StoredMessage:
    """A message as a producer sent it.

    `sent_at`, `expires_at` and `arrived_at` are milliseconds since 1970, None if the message has none: by the clock of
    the producer's client, that plus the time to live, and by the broker's clock. `body` is None if there is none.
    `original` is the original destination of a message in a dead letter queue.
    """

    original: str | None
    sent_at: int | None
    expires_at: int | None
    arrived_at: int | None
    properties: Mapping[str, str]
    body: bytes | None


def acknowledgement(content: bytes) -> Acknowledgement:
    """Return the acknowledgement in a frame.

    Raises:
        FormatError: if it is something else, or cut off.
    """
    data = _opened(content, range(_ACK, _ACK + 1), "an acknowledgement")
    data.object()  # destination
    data.object()  # transaction
    consumer = data.object()
    kind = data.signed(1)
    if kind not in ACK_TYPES:
        raise FormatError(f"expected the type of an acknowledgement from 0 to 6, found {kind}")
    return Acknowledgement(ACK_TYPES[kind], consumer)


def message(content: bytes) -> StoredMessage:
    """Return the message in a frame.

    Raises:
        FormatError: if it is something else, cut off, or larger than `MOST_BODY` when inflated.
    """
    data = _opened(content, _MESSAGES, "a message")
    kind = content[4]
    for _ in range(3):
        data.object()  # producer, destination, transaction
    original = data.object()
    for _ in range(2):
        data.object()  # message id, original transaction
    data.optional_text()  # group
    data.taken(4)
    data.optional_text()  # correlation id
    data.taken(1)  # persistent
    expires_at = data.signed(8)
    data.taken(1)  # priority
    data.object()  # reply to
    sent_at = data.signed(8)
    data.optional_text()  # type
    body, properties = data.optional_bytes(), data.optional_bytes()
    if data.flag():
        raise FormatError("the message holds a command of the broker's own, which is not read")
    data.object()  # target consumer
    is_compressed = data.flag()
    data.taken(4)  # redeliveries
    if data.flag():  # brokers that it went through
        for _ in range(data.number(2)):
            data.object()
    data.taken(8)  # arrival
    data.optional_text()  # user
    data.taken(2)  # from a bridge of another kind, droppable
    if data.flag():  # cluster
        for _ in range(data.number(2)):
            data.object()
    arrived_at = data.signed(8)
    return StoredMessage(
        original,
        sent_at or None,
        expires_at or None,
        arrived_at or None,
        {} if properties is None else _OpenWire(properties).properties(),
        None if body is None else _body(kind, body, is_compressed=is_compressed),
    )


def _opened(content: bytes, kinds: range, subject: str) -> _OpenWire:
    data = _OpenWire(content)
    data.taken(4)  # the frame's length
    kind = data.number(1)
    if kind not in kinds:
        raise FormatError(f"expected {subject} of OpenWire, found a command of type {kind}")
    data.taken(5)  # command id, response required
    return data


def _body(kind: int, body: bytes, *, is_compressed: bool) -> bytes:
    """Return a text as UTF-8, and any other body as stored.

    Raises:
        FormatError: if it cannot be inflated, is too large, or is a truncated text.
    """
    if is_compressed:
        body = _inflated(body[4:] if kind == _BYTES else body)
    if kind != _TEXT:
        return body
    data = DataInput(body)
    length = data.signed(4)
    return b"" if length < 0 else _of_java(data.taken(length))


def _inflated(body: bytes) -> bytes:
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(body, MOST_BODY + 1)
    except zlib.error as error:
        raise FormatError(f"expected a compressed body, found one that cannot be inflated: {error}") from None
    if len(inflated) > MOST_BODY:
        raise FormatError(f"expected a body of at most {MOST_BODY >> 20} MB, found more once it is inflated")
    if not inflater.eof:
        raise FormatError("expected a compressed body, found one that is cut off")
    return inflated


def _of_java(text: bytes) -> bytes:
    """Return a text in Java's modified UTF-8 as UTF-8: zeros in two bytes, surrogate pairs as two characters."""
    if b"\xc0\x80" not in text and b"\xed" not in text:
        return text
    halves = text.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    return halves.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


class _OpenWire(DataInput):
    """Reads the values of OpenWire from bytes, in order."""

    def flag(self) -> bool:
        return self.signed(1) != 0

    def optional_text(self) -> str | None:
        return self.text() if self.flag() else None

    def optional_bytes(self) -> bytes | None:
        return self.taken(self.number(4)) if self.flag() else None

    def object(self, depth: int = 0) -> str | None:
        """Return an object as ActiveMQ prints it, None if there is none."""
        if not self.flag():
            return None
        kind = self.number(1)
        if kind in _DESTINATIONS:
            return _DESTINATIONS[kind] + (self.optional_text() or "")
        reads: Mapping[int, Callable[[int], str]] = {
            _MESSAGE_ID: self._message_id,
            _LOCAL: self._local,
            _XA: self._xa,
            _PRODUCER: self._producer,
            _CONSUMER: self._consumer,
            _CONNECTION: lambda _: self.optional_text() or "",
            _BROKER: lambda _: self.optional_text() or "",
        }
        if kind not in reads or depth > _DEEPEST:
            raise FormatError(f"expected an identity of OpenWire at byte {self.at - 1}, found type {kind}")
        return reads[kind](depth)

    def _message_id(self, depth: int) -> str:
        text, producer, number = self.optional_text(), self.object(depth + 1), self.signed(8)
        self.taken(8)  # the broker's number, which begins anew when it is started again
        return text or f"{producer}:{number}"

    def _local(self, depth: int) -> str:
        value = self.signed(8)
        return f"{self.object(depth + 1)}:{value}"

    def _xa(self, _: int) -> str:
        form, first, second = self.signed(4), self.optional_bytes(), self.optional_bytes()
        return f"{form}:{(first or b'').hex()}:{(second or b'').hex()}"

    def _producer(self, _: int) -> str:
        connection, value, session = self.optional_text(), self.signed(8), self.signed(8)
        return f"{connection}:{session}:{value}"

    def _consumer(self, _: int) -> str:
        connection, session, value = self.optional_text(), self.signed(8), self.signed(8)
        return f"{connection}:{session}:{value}"

    def properties(self) -> dict[str, str]:
        """Return a map's values as texts, without values that have no text, such as nested maps."""
        values: dict[str, str] = {}
        for _ in range(self.number(4)):
            name = self.text()
            value = self._primitive(0)
            if isinstance(value, str):
                values[name] = value
        return values

    def _primitive(self, depth: int) -> str | None:
        kind = self.signed(1)
        numbers: Mapping[int, Callable[[], str]] = {
            1: lambda: str(self.flag()).lower(),
            2: lambda: str(self.signed(1)),
            3: lambda: chr(int.from_bytes(self.taken(2), "big")),
            4: lambda: str(self.signed(2)),
            5: lambda: str(self.signed(4)),
            6: lambda: str(self.signed(8)),
            7: lambda: str(struct.unpack(">d", self.taken(8))[0]),
            8: lambda: str(struct.unpack(">f", self.taken(4))[0]),
            9: self.text,
            13: lambda: _of_java(self.taken(self.number(4))).decode("utf-8", "replace"),
        }
        if kind in numbers:
            return numbers[kind]()
        if depth > _DEEPEST or kind not in (0, 10, 11, 12):
            raise FormatError(f"expected a value of a property at byte {self.at - 1}, found type {kind}")
        if kind == 10:
            self.taken(self.number(4))
        elif kind:
            for _ in range(self.number(4)):
                if kind == 11:
                    self.text()
                self._primitive(depth + 1)
        return None

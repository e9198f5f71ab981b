"""Parses a serialised `HashMap<byte[], byte[]>` of Java: the positions file of a standalone Connect worker.

Only that class is read, and no object of another class: streams of Java's serialisation can describe anything. Work and
memory are bounded by the file's size, whatever numbers it contains.

Source: "Object Serialization Stream Protocol" of the Java Object Serialization Specification; `java.util.HashMap`
(serialized form); `FileOffsetBackingStore` of Apache Kafka 4.3 (connect/runtime).
"""

from __future__ import annotations

import struct
from typing import Final

from tieout.engine.systems.data_input import DataInput
from tieout.engine.systems.json_texts import FormatError

MAGIC: Final = b"\xac\xed\x00\x05"
"""The first bytes of a serialised Java object."""
_NULL, _REFERENCE, _CLASS, _OBJECT, _ARRAY, _BLOCK, _END = 0x70, 0x71, 0x72, 0x73, 0x75, 0x77, 0x78
_BYTES: Final = b"[B"
_MAP: Final = b"java.util.HashMap"
_MAP_VERSION: Final = 362498820763181265
_BYTES_VERSION: Final = -5984413125824719648
_MAP_FIELDS: Final = ((b"F", b"loadFactor"), (b"I", b"threshold"))
_ARRAY_CLASS_HANDLE: Final = 0x7E0002
"""The handle of the array class in later arrays: the map and its class have the two handles before it."""
_WRITABLE_SERIALIZABLE: Final = 0x03
_SERIALIZABLE: Final = 0x02


def byte_map(content: bytes) -> list[tuple[bytes, bytes | None]]:
    """Return the entries of a serialised map from bytes to bytes, in the order of the file.

    Raises:
        FormatError: if it is cut off, has bytes after its end, or is anything else.
    """
    stream = _Stream(content)
    if stream.taken(len(MAGIC)) != MAGIC:
        raise FormatError("expected an object that Java serialised, found another beginning")
    stream.expect(_OBJECT)
    stream.described_class(_MAP, _MAP_VERSION, _WRITABLE_SERIALIZABLE, _MAP_FIELDS)
    stream.taken(8)  # load factor and threshold
    stream.expect(_BLOCK)
    stream.expect(8)
    stream.number(4)  # how many buckets
    count = stream.number(4)
    # An entry has eleven bytes at least, so a count beyond the file's size ends with it.
    entries: list[tuple[bytes, bytes | None]] = []
    keys: set[bytes] = set()
    for _ in range(count):
        key = stream.byte_array()
        if key is None or key in keys:
            raise FormatError(f"expected each key once, found {'none' if key is None else 'one twice'}")
        keys.add(key)
        entries.append((key, stream.byte_array()))
    stream.expect(_END)
    if not stream.is_at_end:
        raise FormatError("expected the end of the file behind the map, found more")
    return entries


class _Stream(DataInput):
    """Reads the stream of a serialised map, which has no negative numbers."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self._has_array_class = False

    def expect(self, value: int) -> None:
        """Read a byte that must have this value."""
        byte = self.taken(1)[0]
        if byte != value:
            raise FormatError(
                f"expected {value:#04x} at byte {self.at - 1}, found {byte:#04x}: no map of bytes"
            )

    def described_class(
        self, name: bytes, version: int, flags: int, fields: tuple[tuple[bytes, bytes], ...]
    ) -> None:
        """Read the description of this class, which precedes its first object."""
        self.expect(_CLASS)
        class_name = self.taken(self.number(2))
        if class_name != name:
            shown = class_name[:40].decode("ascii", "replace")
            raise FormatError(f"expected the class {name.decode()}, found {shown!r}: no map of bytes")
        described = struct.pack(">qBH", version, flags, len(fields))
        described += b"".join(kind + struct.pack(">H", len(field)) + field for kind, field in fields)
        if self.taken(len(described)) != described:
            raise FormatError(f"expected {name.decode()} as Java 8 and later write it, found another form")
        self.expect(_END)
        self.expect(_NULL)

    def byte_array(self) -> bytes | None:
        """Return the next array of bytes; None for null."""
        kind = self.taken(1)[0]
        if kind == _NULL:
            return None
        if kind != _ARRAY:
            raise FormatError(f"expected an array of bytes at byte {self.at - 1}, found {kind:#04x}")
        self._array_class()
        return self.taken(self.number(4))

    def _array_class(self) -> None:
        if self._has_array_class:
            self.expect(_REFERENCE)
            if self.number(4) != _ARRAY_CLASS_HANDLE:
                raise FormatError(
                    f"expected the class of arrays of bytes at byte {self.at - 4}, found another"
                )
        else:
            self.described_class(_BYTES, _BYTES_VERSION, _SERIALIZABLE, ())
            self._has_array_class = True

"""Maps of bytes as Java 17 serialises them, for the positions of a standalone Connect worker."""

from __future__ import annotations

import struct

_OF_MAP = struct.pack(
    ">4sBBH17sqBH", b"\xac\xed\0\5", 0x73, 0x72, 17, b"java.util.HashMap", 362498820763181265, 3, 2
)
_FIELDS = struct.pack(">cH10scH9sBB", b"F", 10, b"loadFactor", b"I", 9, b"threshold", 0x78, 0x70)
_OF_BYTES = struct.pack(">BH2sqBHBB", 0x72, 2, b"[B", -5984413125824719648, 2, 0, 0x78, 0x70)


def serialised_map(*entries: tuple[bytes, bytes | None]) -> bytes:
    """The bytes of a map; what Java itself wrote is read in the unit tests."""
    content = _OF_MAP + _FIELDS + struct.pack(">fiBBii", 0.75, 12, 0x77, 8, 16, len(entries))
    of_class = _OF_BYTES
    for part in (one for entry in entries for one in entry):
        if part is None:
            content += b"\x70"
        else:
            content += b"\x75" + of_class + struct.pack(">i", len(part)) + part
            of_class = struct.pack(">BI", 0x71, 0x7E0002)
    return content + b"\x78"

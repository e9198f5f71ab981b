"""The operators of a Flink job: name, uid, and the id that Flink derives from the uid.

Metadata before Flink 2.0 contains the id only. A uid from the contract still finds the operator, by its hash.

Source: `StreamGraphHasherV2` of Apache Flink 1.18 to 2.3 (`murmur3_128` of the uid, seed 0); MurmurHash3_x64_128 of the
public reference implementation by Austin Appleby.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_MASK: Final = 2**64 - 1
_BLOCK: Final = 16
_FACTORS: Final = 0x87C37B91114253D5, 0x4CF5AD432745937F


NAMELESS: Final = "; Flink before 2.0 writes no names, so give the operator's uid or its id"
"""The end of a reason why a named operator is not found."""


@dataclass(frozen=True)
class Operator:
    """An operator: its id in hexadecimal digits; its name and its uid are empty if the metadata has none."""

    id: str
    name: str = ""
    uid: str = ""

    @property
    def label(self) -> str:
        """The name to show, or the id if it has none."""
        return self.name or self.id

    @property
    def is_nameless(self) -> bool:
        """Whether the metadata has neither a name nor a uid, as before Flink 2.0."""
        return not self.name and not self.uid

    @property
    def key(self) -> str:
        """What a contract names the operator by: its uid, or its label if it has none."""
        return self.uid or self.label

    def is_called(self, text: str) -> bool:
        """Return whether a text is the operator's name, its uid or its id."""
        return text in (self.name, self.uid, self.id) or self.id == id_of_uid(text)


@lru_cache(maxsize=64)
def id_of_uid(uid: str) -> str:
    """Return the id that Flink derives from an operator's uid.

    >>> id_of_uid("input")
    'c3919b0b80c770dcaba928458d2e49b0'
    """
    content = uid.encode("utf-8", "replace")
    first = second = 0
    whole = len(content) - len(content) % _BLOCK
    for at in range(0, whole, _BLOCK):
        blocks = struct.unpack_from("<QQ", content, at)
        first = _rotated(first ^ _mixed_first(blocks[0]), 27) + second
        first = (first * 5 + 0x52DCE729) & _MASK
        second = _rotated(second ^ _mixed_second(blocks[1]), 31) + first
        second = (second * 5 + 0x38495AB5) & _MASK
    tail = content[whole:].ljust(_BLOCK, b"\0")
    blocks = struct.unpack("<QQ", tail)
    first ^= _mixed_first(blocks[0]) ^ len(content)
    second ^= _mixed_second(blocks[1]) ^ len(content)
    first = (first + second) & _MASK
    second = (second + first) & _MASK
    first, second = _finished(first), _finished(second)
    first = (first + second) & _MASK
    second = (second + first) & _MASK
    return struct.pack("<QQ", first, second).hex()


def _mixed_first(block: int) -> int:
    return _rotated(block * _FACTORS[0], 31) * _FACTORS[1] & _MASK


def _mixed_second(block: int) -> int:
    return _rotated(block * _FACTORS[1], 33) * _FACTORS[0] & _MASK


def _finished(value: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor & _MASK
    return value ^ value >> 33


def _rotated(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> 64 - bits) & _MASK

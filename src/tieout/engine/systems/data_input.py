"""Reads the format of Java's `DataOutputStream`: big-endian numbers and length-prefixed texts.

Source: `java.io.DataOutput` of Java SE 17.
"""

from __future__ import annotations

from tieout.engine.systems.json_texts import FormatError


class DataInput:
    """Bytes that are read once, from start to end."""

    def __init__(self, content: bytes, at: int = 0) -> None:
        self._content, self._at = content, at

    @property
    def is_at_end(self) -> bool:
        """Whether nothing is left."""
        return self._at == len(self._content)

    @property
    def at(self) -> int:
        """The index of the next byte."""
        return self._at

    def taken(self, count: int) -> bytes:
        """Return the next bytes.

        Raises:
            FormatError: if there are fewer.
        """
        if count > len(self._content) - self._at:
            raise FormatError(f"cut off at byte {len(self._content)}")
        self._at += count
        return self._content[self._at - count : self._at]

    def remaining(self) -> bytes:
        """Return all remaining bytes."""
        return self.taken(len(self._content) - self._at)

    def signed(self, count: int) -> int:
        """Return the next signed number of `count` bytes.

        Raises:
            FormatError: if there are fewer.
        """
        return int.from_bytes(self.taken(count), "big", signed=True)

    def number(self, count: int) -> int:
        """Return the next number, which must not be negative.

        >>> DataInput(bytes([0, 7])).number(2)
        7

        Raises:
            FormatError: if it is negative, or cut off.
        """
        value = self.signed(count)
        if value < 0:
            raise FormatError(f"expected a number from 0 on at byte {self._at - count}, found {value}")
        return value

    def varint(self) -> int:
        """Return the next unsigned varint of Kafka: seven bits per byte, the lowest first.

        Source: "The Kafka Protocol", UNSIGNED_VARINT.

        >>> DataInput(bytes([0xAC, 0x02])).varint()
        300

        Raises:
            FormatError: if it is cut off, or has more than five bytes.
        """
        value = 0
        for place in range(5):
            byte = self.taken(1)[0]
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return value
        raise FormatError("expected a number of at most five bytes, found a longer one")

    def text(self) -> str:
        """Return the next text; invalid UTF-8 is replaced.

        Raises:
            FormatError: if it is cut off.
        """
        return self.taken(int.from_bytes(self.taken(2), "big")).decode("utf-8", "replace")

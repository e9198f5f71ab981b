"""The checksum of Kafka's record batches: CRC-32C, the Castagnoli polynomial of RFC 3720, appendix B.4.

The standard library has CRC-32 only, and a recording reads a megabyte at most: a table is enough.
"""

from __future__ import annotations

_REVERSED_POLYNOMIAL = 0x82F63B78


def _table_entry(byte: int) -> int:
    """Return the remainder of one byte."""
    for _ in range(8):
        byte = (byte >> 1) ^ (_REVERSED_POLYNOMIAL if byte & 1 else 0)
    return byte


_TABLE = tuple(_table_entry(byte) for byte in range(256))


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of the bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF

"""The codecs of Kafka's record batches; decompression is `cramjam`'s.

Java clients write snappy in the blocks of the library `snappy-java`, librdkafka writes one plain block: both are read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

import cramjam

from tieout.engine.kafka.records import LogError

_JAVA_SNAPPY: Final = b"\x82SNAPPY\x00"
_JAVA_HEADER_BYTES: Final = 16
"""The name, a version and the lowest compatible one."""
_LENGTH: Final = struct.Struct(">i")


def _snappy(data: bytes) -> bytes:
    if not data.startswith(_JAVA_SNAPPY):
        return bytes(cramjam.snappy.decompress_raw(data))
    blocks, position = [], _JAVA_HEADER_BYTES
    while position < len(data):
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        blocks.append(bytes(cramjam.snappy.decompress_raw(data[position : position + length])))
        position += length
    return b"".join(blocks)


_CODECS: Final[dict[int, tuple[str, Callable[[bytes], bytes]]]] = {
    1: ("gzip", lambda data: bytes(cramjam.gzip.decompress(data))),
    2: ("snappy", _snappy),
    3: ("lz4", lambda data: bytes(cramjam.lz4.decompress(data))),
    4: ("zstd", lambda data: bytes(cramjam.zstd.decompress(data))),
}
"""By the three bits of a batch's attributes (Kafka documentation, "Record Batch")."""


def decompressed(codec: int, data: bytes) -> bytes:
    """Return the records of a batch, given the codec's number in the batch's attributes; 0 is none.

    Raises:
        LogError: for a codec that Kafka does not have, and for data that is not the codec's.
    """
    if codec == 0:
        return data
    if codec not in _CODECS:
        raise LogError(f"expected a codec from 0 to {max(_CODECS)}, found {codec}")
    name, decompress = _CODECS[codec]
    try:
        return decompress(data)
    except (cramjam.DecompressionError, struct.error) as error:
        raise LogError(f"the records are not {name}: {error}") from None

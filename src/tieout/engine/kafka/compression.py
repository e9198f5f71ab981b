"""The codecs of Kafka's record batches, unpacked in pieces up to a limit; the libraries are `pyarrow` and `cramjam`.

A batch of a hundred kilobytes may unpack to gigabytes, so nothing is unpacked of which the size is not known or counted
meanwhile. Java clients write snappy in the blocks of the library `snappy-java`, librdkafka writes one plain block: both
are read.
"""

from __future__ import annotations

import struct
from typing import Final

import cramjam
import pyarrow as pa

from tieout.engine.kafka.records import LogError
from tieout.settings import UNPACKED_RECORD_MB, Unpacking

_JAVA_SNAPPY: Final = b"\x82SNAPPY\x00"
_JAVA_HEADER_BYTES: Final = 16
"""The name, a version and the lowest compatible one."""
_LENGTH: Final = struct.Struct(">i")
_PIECE: Final = 1 << 20
_SNAPPY: Final = 2
_STREAMED: Final = {1: "gzip", 3: "lz4", 4: "zstd"}
_NAMES: Final = {**_STREAMED, _SNAPPY: "snappy"}
"""By the three bits of a batch's attributes (Kafka documentation, "Record Batch")."""


def decompressed(codec: int, data: bytes, most: int = Unpacking.record) -> bytes:
    """Return the records of a batch, given the codec's number in the batch's attributes; 0 is none.

    They are unpacked up to `most` bytes.

    Raises:
        LogError: for a codec that Kafka does not have, for data that is not the codec's, and for more bytes.
    """
    if codec == 0:
        return data
    if codec not in _NAMES:
        raise LogError(f"expected a codec from 0 to {max(_NAMES)}, found {codec}")
    try:
        return _snappy(data, most) if codec == _SNAPPY else _streamed(_STREAMED[codec], data, most)
    except (OSError, cramjam.DecompressionError, struct.error) as error:
        raise LogError(f"the records are not {_NAMES[codec]}: {error}") from None


def _streamed(name: str, data: bytes, most: int) -> bytes:
    pieces, size = [], 0
    with pa.input_stream(pa.py_buffer(data), compression=name) as stream:
        while piece := stream.read(_PIECE):
            size += len(piece)
            _refuse_more(size, most)
            pieces.append(piece)
    return b"".join(pieces)


def _snappy(data: bytes, most: int) -> bytes:
    """Return what the blocks hold, each of which begins with how much that is."""
    if not data.startswith(_JAVA_SNAPPY):
        _refuse_more(_snappy_bytes(data), most)
        return bytes(cramjam.snappy.decompress_raw(data))
    blocks, position, size = [], _JAVA_HEADER_BYTES, 0
    while position < len(data):
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        if not 0 < length <= len(data) - position:
            left = len(data) - position
            raise LogError(
                f"the records are not snappy: expected a block of at most {left} bytes, found one of {length}"
            )
        block = data[position : position + length]
        size += _snappy_bytes(block)
        _refuse_more(size, most)
        blocks.append(bytes(cramjam.snappy.decompress_raw(block)))
        position += length
    return b"".join(blocks)


def _snappy_bytes(block: bytes) -> int:
    """Return how many bytes a block says that it holds: seven bits a byte, the lowest first.

    Source: google/snappy, format_description.txt, "Preamble".
    """
    size = 0
    for place, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return size
    raise LogError("the records are not snappy: a block does not say how long it is")


def _refuse_more(size: int, most: int) -> None:
    if size > most:
        expected = f"expected records of at most {most >> 20} MB unpacked"
        raise LogError(f"{expected}, found more; {UNPACKED_RECORD_MB} allows more")

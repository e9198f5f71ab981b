"""Parses one position of a source connector, which Kafka Connect stores as JSON.

The key is an array of the connector's name and its source partition, an object; the value is the source offset, an
object, or nothing if the position was deleted. The connector chooses the names of the fields: those of
FileStreamSource are `filename` and `position`, the byte at which reading continues. A connector that reads partitions,
such as MirrorMaker's, has a number in the field `partition`. `GET /connectors/NAME/offsets` answers with the same two
objects, for a sink with the group's positions: `kafka_topic`, `kafka_partition` and `kafka_offset`.

Source: `OffsetStorageWriter`, `OffsetUtils` and `ConnectorOffsets` of Apache Kafka 4.3 (connect/runtime); KIP-875.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Final

from tieout.engine.limits import number_in
from tieout.engine.systems.json_texts import FormatError, exact_json, json_object, offset_in

PARTITION: Final = "partition"
"""The field of a source partition that may hold a partition's number."""
_PARTITION_OF_SINK: Final = "kafka_partition"
NUMBER: Final = "^[0-9]{1,9}$"


@dataclass(frozen=True)
class SourcePosition:
    """A connector's position in a place of its source; `offset` is None if the position was deleted.

    `source` is the whole source partition in canonical JSON.
    """

    connector: str
    place: str
    offset: int | None
    partition: int = 0
    source: str = field(default="", compare=False, repr=False)


def source_position(
    key: bytes, value: bytes | None, connector: str, fields: tuple[str, str]
) -> SourcePosition | None:
    """Return the position, None if it is another connector's.

    >>> source_position(b'["src",{"filename":"/in"}]', b'{"position":30}', "src", ("filename", "position"))
    SourcePosition(connector='src', place='/in', offset=30, partition=0)

    Args:
        key: The bytes of the key.
        value: The bytes of the value, None for a deletion.
        connector: The name of the connector.
        fields: The names of the fields with the place, and with the position in it.

    Raises:
        FormatError: if key or value have another form, or lack the field.
    """
    key_parts = exact_json(_text(key, "key"))
    if not isinstance(key_parts, list) or len(key_parts) != 2 or not isinstance(key_parts[0], str):
        raise FormatError("expected a key [connector, source partition], found another")
    if key_parts[0] != connector:
        return None
    place = _field(key_parts[1], fields[0], "source partition")
    offsets = None if value is None else exact_json(_text(value, "value"))
    shown = place if isinstance(place, str) else json.dumps(place, separators=(",", ":"))
    number = (
        str(key_parts[1].get(PARTITION, key_parts[1].get(_PARTITION_OF_SINK)))
        if isinstance(key_parts[1], dict)
        else ""
    )
    partition = int(number) if re.match(NUMBER, number) else 0
    source = json.dumps(key_parts[1], sort_keys=True)
    if offsets is None:
        return SourcePosition(connector, shown, None, partition, source)
    stated_offset = _field(offsets, fields[1], "source offset")
    offset = offset_in(number_in(stated_offset) if isinstance(stated_offset, str) else stated_offset)
    if offset is None:
        raise FormatError(
            f"expected a whole number from 0 on in the field {fields[1]} of the source offset, found none"
        )
    return SourcePosition(connector, shown, offset, partition, source)


def is_answer(content: bytes) -> bool:
    """Return whether a file is a JSON object: an answer of the REST interface, not a worker's own file."""
    return content.lstrip().startswith(b"{")


def answered_positions(content: bytes, connector: str) -> list[tuple[bytes, bytes | None]]:
    """Return the positions in an answer to `GET /connectors/NAME/offsets`, as a worker stores them.

    >>> answered_positions(b'{"offsets":[{"partition":{"filename":"/in"},"offset":{"position":30}}]}', "src")
    [(b'["src", {"filename": "/in"}]', b'{"position": 30}')]

    Raises:
        FormatError: if it is another answer, such as an error.
    """
    fields = json_object(_text(content, "answer"))
    offsets = fields.get("offsets")
    if not isinstance(offsets, list):
        names = ", ".join(sorted(fields)[:5])[:80] or "none"
        raise FormatError(
            f"expected the answer to GET /connectors/{connector}/offsets, an object with offsets, found fields {names}"
        )
    positions: list[tuple[bytes, bytes | None]] = []
    for each in offsets:
        if not isinstance(each, dict) or "partition" not in each or "offset" not in each:
            raise FormatError("expected partition and offset of each position, found another")
        value = None if each["offset"] is None else json.dumps(each["offset"]).encode()
        positions.append((json.dumps([connector, each["partition"]]).encode(), value))
    return positions


def _text(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise FormatError(f"expected a {name} in UTF-8, found other bytes") from None


def _field(value: object, name: str, holder: str) -> object:
    if not isinstance(value, dict) or value.get(name) is None:
        names = ", ".join(sorted(map(str, value))[:5]) if isinstance(value, dict) else "no object"
        raise FormatError(f"expected a field {name} in the {holder}, found {names[:80] or 'none'}")
    return value[name]

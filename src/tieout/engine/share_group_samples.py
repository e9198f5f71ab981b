"""Samples the state of share groups in a broker's log directory or a cluster: which topics have one, of which groups.

It reads what the reader of the kind `kafka_share_group` reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

from tieout.contracts import STATE_TOPIC, KafkaShareGroupSource
from tieout.contracts.guessing import POSITION_COLUMNS, LedgerSample
from tieout.engine.kafka.folders import folders_of
from tieout.engine.kafka.records import Batch, LogError
from tieout.engine.kafka.segments import batches
from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.share_state import StateKey, state_key
from tieout.errors import SourceError
from tieout.regular_files import opened_file
from tieout.settings import unpacking

_MOST_BATCHES: Final = 10_000
_MOST_FOLDERS: Final = 10_000
_MOST_RECORDS: Final = 10_000
_MOST_NAMED: Final = 5


def has_share_state(folder: Path) -> bool:
    """Return whether a local folder is a broker's log directory with a partition of share groups' state."""
    return any(path.is_dir() for path in islice(folder.glob(f"{STATE_TOPIC}-*"), 1))


def share_group_sample(text: str, place: str) -> LedgerSample:
    """Return the sample of the topic with most of the state in a log directory; a warning names its groups.

    Raises:
        SourceError: where there is no state, it cannot be read, or no folder of a topic with state is beside it.
    """
    folder = Path(text)
    state = folders_of((str(folder.absolute()),), folder, STATE_TOPIC).folders
    keys: Counter[StateKey] = Counter()
    for segment in (one for part in state for one in part.segments):
        keys.update(_keys_in(segment, f"{place} {text}"))
    found = _sample_of(
        keys, _topic_names(folder), text, f"{place} {text}", "a topic whose folders are beside it"
    )
    if len(state) == KafkaShareGroupSource.model_fields["partitions"].default:
        return found
    return replace(found, options=(*found.options, ("partitions", len(state))))


def cluster_sample(connection: str, place: str) -> LedgerSample:
    """Return the sample of the topic with most of a cluster's newest state; a warning names its groups.

    Raises:
        SourceError: where there is no state, or it cannot be read.
        ConnectionNotFoundError: where the connection is not defined.
    """
    from tieout.engine.sources.kafka_newest import newest_state  # noqa: PLC0415 - loads PySpark

    path = f"{connection}:{STATE_TOPIC}"
    records, names = newest_state(connection, place, _MOST_RECORDS)
    try:
        keys = Counter(state_key(key)._replace(is_snapshot=False) for key in records)
    except FormatError as error:
        raise SourceError(f"{place} {path}: a record cannot be read: {error}") from error
    found = _sample_of(keys, names, path, f"{place} {path}", "a topic of the cluster")
    return replace(found, form="kafka")


def _sample_of(
    keys: Counter[StateKey], names: Mapping[str, str], path: str, place: str, expected: str
) -> LedgerSample:
    """Return the sample of the topic with most records.

    Raises:
        SourceError: where no record is of a topic whose name is known.
    """
    topics = Counter(dict.fromkeys(names.values(), 0))
    for key, count in keys.items():
        if key.topic_id in names:
            topics[names[key.topic_id]] += count
    (topic, most), *_ = topics.most_common(1) or [("", 0)]
    if not most:
        raise SourceError(f"{place}: expected the state of a share group in {expected}, found none")
    groups = sorted({key.group for key in keys if names.get(key.topic_id) == topic})
    others = sorted(name for name, count in topics.items() if count and name != topic)
    warnings = [f"share groups with a state of {topic}: {', '.join(groups[:_MOST_NAMED])}"]
    warnings += [f"other topics with a state: {', '.join(others[:_MOST_NAMED])}"] if others else []
    options = (("topic", topic),)
    count = sum(keys.values())
    return LedgerSample(
        "", path, (), count, ",", tuple(warnings), "kafka_share_group", options, POSITION_COLUMNS
    )


def _keys_in(segment: Path, place: str) -> Counter[StateKey]:
    """Return the number of records of each partition and group among the first batches of a segment.

    Raises:
        SourceError: where the segment cannot be read.
    """
    found: Counter[StateKey] = Counter()
    try:
        with opened_file(segment) as file:
            entries = batches(file, segment.stat().st_size, unpacking().record)
            for entry in islice(entries, _MOST_BATCHES):
                if isinstance(entry, Batch) and not entry.is_control:
                    keys = (state_key(record.key or b"") for record in entry.records())
                    found.update(key._replace(is_snapshot=False) for key in keys)
    except (OSError, LogError, FormatError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SourceError(f"{place}: {segment.name} cannot be read: {reason}") from error
    return found


def _topic_names(folder: Path) -> dict[str, str]:
    """Return the names of the topics whose folders are in a log directory, by their ids."""
    paths = sorted(islice(folder.iterdir(), _MOST_FOLDERS))
    named = ((path, path.name.rpartition("-")[0]) for path in paths)
    found = (
        part
        for path, name in named
        if name and path.is_dir()
        for part in folders_of((str(path.absolute()),), folder, name).folders
    )
    return {part.topic_id: part.topic for part in found if part.topic_id is not None}

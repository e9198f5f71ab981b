"""The reader of the kind `kafka_dump_log`: a topic's log as `kafka-dump-log` prints it, for users who can only paste.

Printed with `--print-data-log` it is what the segments hold, but for the values of headers and for keys and values that
are no text; with `--deep-iteration` alone it has positions, transactions and times, and neither keys nor values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tieout.contracts import KafkaDumpLogSource
from tieout.encodings import opened
from tieout.engine.kafka.dumps import Outline, Place, outline_of
from tieout.engine.kafka.pieces import Piece
from tieout.engine.sources.discovery import DUMP, inputs_of
from tieout.engine.sources.inputs import Input
from tieout.engine.sources.kafka_log import LogSpec, for_ledger, log_reading, refuse_other_ledgers
from tieout.engine.sources.paths import is_remote
from tieout.engine.sources.positions import shortened
from tieout.engine.sources.source import FILE, UNSURE, Reading, Request
from tieout.errors import SourceError
from tieout.model import Ledger

_MOST_PARTITIONS: Final = 1000
_COLUMNS: Final = ("key", "value")


def read(spec: KafkaDumpLogSource, request: Request) -> Reading:
    """Return the records that the dumps show, control records included, with their transactions' states.

    The log's bounds are those of the text: it starts with the first batch and ends behind the last.

    Raises:
        SourceError: for a ledger that a topic cannot be, and for a path that is not on a file system of this machine.
    """
    refuse_other_ledgers(request, spec.kind)
    for path in spec.path:
        if is_remote(path):
            raise SourceError(
                f"{request.place}.path: expected a file that this machine can open, found {path}"
            )
    inputs = inputs_of(request.spark, spec.path, request.base_dir, DUMP)
    outlines = {file: _outlined(file) for file in inputs.readable}
    unnamed = tuple(_unnamed(spec, request.ledger, outlines))
    pieces: dict[Place, list[Piece]] = {}
    for file, outline in () if unnamed else outlines.items():
        for piece in (
            () if _partition_count(spec, outline) > _MOST_PARTITIONS else _pieces(spec, file, outline)
        ):
            pieces.setdefault((piece.topic, piece.partition), []).append(piece)
    reading = log_reading(
        request,
        pieces=pieces,
        facts={},
        spec=LogSpec(spec.taken_time(request.now), spec.cleanup_policy, spec.partitions, _COLUMNS),
        faults=[*inputs.faults, *unnamed, *_faults(spec, outlines)],
        notes=(*inputs.encodings, *_notes(outlines)),
    )
    unsure = [file for file, outline in outlines.items() if outline.may_replace]
    if reading.rows is not None and unsure:
        reading = replace(reading, rows=reading.rows.withColumn(UNSURE, _replaced(unsure)))
    return for_ledger(reading, request.ledger)


def _replaced(files: Sequence[Input]) -> Column:
    """Return which of key and value have a question mark, which the tool prints for an unprintable character."""
    is_of_these = F.col(FILE).isin(*[Path(file.path).as_uri() for file in files])
    shown = [F.when(F.col(name).cast("string").contains("?"), F.lit(name)) for name in _COLUMNS]
    return F.when(is_of_these, F.array_compact(F.array(*shown)))


def _outlined(file: Input) -> Outline:
    with opened(Path(file.path)) as lines:
        return outline_of(line.rstrip("\n") for line in lines)


def _unnamed(spec: KafkaDumpLogSource, ledger: Ledger, outlines: Mapping[Input, Outline]) -> Iterator[str]:
    """Yield why no record is read where the text has several topics and nothing names the ledger's.

    Records of a pipeline's input would else be its effects. In `log` each record names the topic that it is in.
    """
    topics = sorted({topic for outline in outlines.values() for topic, _ in outline.places})
    if ledger is not Ledger.LOG and spec.topic is None and len(topics) > 1:
        yield (
            f"expected dumps of one topic, or topic in the source, found dumps of "
            f"{', '.join(shortened(tuple(topics)))}: name the topic that is {ledger}"
        )


def _partition_count(spec: KafkaDumpLogSource, outline: Outline) -> int:
    """Return how many of a dump's partitions are read; the dump is read once for each of them."""
    return sum(spec.topic in (None, topic) for topic, _ in outline.places)


def _pieces(spec: KafkaDumpLogSource, file: Input, outline: Outline) -> Iterator[Piece]:
    named = None if spec.topic is None or spec.partition is None else (spec.topic, spec.partition)
    for topic, partition in sorted(outline.places):
        if spec.topic in (None, topic):
            is_placed = not (outline.has_unplaced and named == (topic, partition))
            yield Piece(file.path, "dump", topic, partition, file.size, is_placed)
    if named is not None and outline.has_unplaced and named not in outline.places:
        yield Piece(file.path, "dump", *named, file.size, is_placed=False)


def _faults(spec: KafkaDumpLogSource, outlines: Mapping[Input, Outline]) -> Iterator[str]:
    """Yield the parts of the text that are of no known partition."""
    for file, outline in outlines.items():
        if (partition_count := _partition_count(spec, outline)) > _MOST_PARTITIONS:
            yield (
                f"{file.name}: expected a dump of at most {_MOST_PARTITIONS} partitions, found {partition_count}; "
                "dump them into several files"
            )
        if outline.has_unplaced and (spec.topic is None or spec.partition is None):
            yield (
                f"{file.name}: batches below no line `Dumping …/<topic>-<partition>/<segment>.log`: "
                "name topic and partition in the source"
            )
        elif not outline.places and not outline.has_unplaced:
            yield (
                f"{file.name}: expected what kafka-dump-log prints, lines `baseOffset: …` and below each "
                "`| offset: …`, found no such line; paste it whole, and without a sign before each line"
            )
        elif spec.topic is not None and not outline.has_unplaced and spec.topic not in dict(outline.places):
            yield f"{file.name}: no dump of a segment of {spec.topic}"


def _notes(outlines: Mapping[Input, Outline]) -> Iterator[str]:
    for file, outline in outlines.items():
        if outline.noise:
            yield f"{file.name}: {outline.noise} lines of a shell or a logger, passed over"
        if outline.bare:
            yield f"{file.name}: {outline.bare} records without key and value; --print-data-log prints them"
        if outline.may_replace:
            yield (
                f"{file.name}: no character but those of ASCII, so that a question mark may stand for any other byte: "
                "keys and values that have one are unknown; print the dump with LC_ALL=C.UTF-8, or read the segment "
                "itself with kind: kafka_segments"
            )

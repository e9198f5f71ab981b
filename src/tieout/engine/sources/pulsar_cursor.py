"""The reader of the kind `pulsar_cursor`: which of a topic's messages a subscription has acknowledged.

All up to the mark-delete position are, and single entries beyond it. Nothing says when: the rows have no time. The
broker's statistics do not show a batch with only some messages acknowledged: it counts as not acknowledged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from tieout.contracts import PulsarCursorSource
from tieout.engine.materialising import no_rows
from tieout.engine.sources.positions import POSITIONS, require_position_ledger, shortened
from tieout.engine.sources.pulsar_topics import Statistics, absent, partitions_of, statistics_of
from tieout.engine.sources.source import Reading, Request
from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.pulsar_positions import cursor_in, cursors_in
from tieout.pulsar import Answers, opened_answers

_ROWS: Final = f"{POSITIONS}, is_individual BOOLEAN"
_Row = tuple[object, ...]


def read(spec: PulsarCursorSource, request: Request) -> Reading:
    """Return one row for each partition's mark-delete position, and one for each range of entries beyond it.

    Raises:
        ConnectionNotFoundError: where the connection is not defined.
        SourceError: where the contract uses the source for another ledger than one of positions, and where the broker
            does not answer.
    """
    require_position_ledger(spec.kind, request)
    answers = opened_answers(spec, request.base_dir, request.place)
    try:
        return _reading(answers, spec, request)
    finally:
        answers.close()


def _reading(answers: Answers, spec: PulsarCursorSource, request: Request) -> Reading:
    rows: list[_Row] = []
    faults: list[str] = []
    notes: list[str] = []
    answered_at: datetime | None = None
    try:
        partitions = partitions_of(answers, spec)
    except FormatError as error:
        partitions, faults = (), [str(error)]
    for partition in partitions:
        try:
            found = statistics_of(answers, partition)
            if found is None:
                faults.append(f"{partition.path}: the broker says nothing of it")
                continue
            answered_at = found.answered_at
            own = list(_rows(found, spec, request, notes))
        except FormatError as error:
            faults.append(str(error))
            continue
        rows += own
    if not partitions and not faults:
        return Reading(None, is_present=False, read_at=request.now, notes=tuple(absent(spec)))
    taken_at = spec.taken_time(request.now) if spec.connection is None else answered_at
    return Reading(
        rows=request.spark.createDataFrame(rows, _ROWS) if rows else no_rows(request.spark, _ROWS),
        is_present=True,
        read_at=request.now if spec.taken_at is None or taken_at is None else taken_at,
        digests=(_digest(rows, spec),),
        unparsed_inputs=len(faults),
        notes=(*shortened(tuple(faults)), *shortened(tuple(notes))),
        complete_until=request.now if spec.connection is not None else taken_at,
        taken_at=taken_at,
    )


def _rows(found: Statistics, spec: PulsarCursorSource, request: Request, notes: list[str]) -> Iterator[_Row]:
    """Yield the rows of one partition's cursor; one without such a cursor has none, and a note.

    Raises:
        FormatError: where the cursor is not as Pulsar writes it.
    """
    cursors = cursors_in(found.fields)
    if spec.subscription not in cursors:
        known = ", ".join(sorted(cursors)) or "none"
        notes.append(f"{found.partition.path}: no subscription {spec.subscription}, found {known}")
        return
    cursor = cursor_in(cursors[spec.subscription])
    ledgers, (ledger, entry) = found.ledgers, cursor.mark_delete
    metadata = json.dumps({"markDeletePosition": f"{ledger}:{entry}"})
    ranges: list[_Row] = [(None, ledgers.after(cursor.mark_delete), None, metadata, False)]
    for first, last in cursor.ranges:
        metadata = json.dumps(
            {"individuallyDeletedMessages": f"({first[0]}:{first[1]}..{last[0]}:{last[1]}]"}
        )
        ranges.append((ledgers.after(first), ledgers.after(last), None, metadata, True))
    for place, (*acknowledged, is_individual) in enumerate(ranges):
        of_partition = (request.group, spec.topic, found.partition.number)
        yield (*of_partition, *acknowledged, None, None, 0, place, None, is_individual)


def _digest(rows: list[_Row], spec: PulsarCursorSource) -> str:
    """Return the SHA-256 of the acknowledged entries of each partition."""
    text = json.dumps([(row[2], row[3], row[4], row[-1]) for row in rows])
    return f"positions-sha256:{hashlib.sha256(text.encode()).hexdigest()}  {spec.topic}:{spec.subscription}"

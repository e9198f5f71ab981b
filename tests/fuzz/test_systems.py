"""Parsers of what other systems keep, against what nobody wrote on purpose: each ends soon, in a result or an error."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.engine.sources.flink import SINK, SOURCE, committer, metadata, split, transaction
from tests.engine.sources.maps import serialised_map
from tests.engine.sources.share_state import ACKNOWLEDGED, ARCHIVED, update
from tests.engine.sources.share_state import key as state_name
from tests.engine.sources.share_state import snapshot as state_snapshot
from tests.engine.sources.zookeeper import ROOT, current, entry, log, ranged, snapshot
from tests.fuzz.changing import CASES, EXTREMES, SECONDS, changed_bytes
from tests.pulsar import ANSWERS, ORDERS, STATISTICS

from tieout.contracts.sources.connect import RANGE_NAME
from tieout.engine.sources.small_files import small_file
from tieout.engine.systems.connect_positions import source_position
from tieout.engine.systems.flink_checkpoint import checkpoint_in
from tieout.engine.systems.flink_states import (
    COMMITTER_STATE,
    SOURCE_STATE,
    prepared_transactions,
    split_position,
)
from tieout.engine.systems.java_maps import byte_map
from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.pulsar_entries import entry_in
from tieout.engine.systems.pulsar_positions import (
    cursor_in,
    cursors_in,
    ledgers_in,
    packed,
    shown_position,
    stats_in,
)
from tieout.engine.systems.range_names import divided, range_name
from tieout.engine.systems.share_state import share_state, state_key
from tieout.engine.systems.spark_checkpoint import (
    PlannedBatch,
    history_of,
    initial_offsets,
    planned_batch,
    require_commit,
)
from tieout.engine.systems.spark_manifest import (
    LogName,
    SinkFile,
    log_name,
    logged_files,
    origin_of,
    output_of,
)
from tieout.engine.systems.trident_state import Stream, topologies_of
from tieout.engine.systems.zookeeper_log import Transaction, transactions_in
from tieout.engine.systems.zookeeper_snapshot import nodes_in
from tieout.pulsar import Answer, AnswerError, SavedAnswers

_OFFSETS = b'v1\n{"batchTimestampMs":1795000000000,"conf":{}}\n{"orders":{"0":5,"1":9}}\n{"logOffset":2}\n-'
_COMMIT = b'v1\n{"nextBatchWatermarkMs":0}'
_LOG = b'v1\n{"path":"file:///out/part%201","size":7,"isDir":false,"action":"add"}\n{"path":"/out/b","size":0,"action":"delete"}'
_MAP = serialised_map(
    (b'["src",{"filename":"/in"}]', b'{"position":30}'), (b'["src",{"filename":"/old"}]', None)
)
_NAME = b"orders+0+0000000005+0000000009.json"
_COMMITTERS = tuple(
    committer(3, transaction(11, 0), transaction(12, 1), versions=versions)
    for versions in ((0, 0), (1, 1), (1, 2))
)
_METADATA = tuple(
    metadata(
        3,
        {SOURCE: {SOURCE_STATE: [split("orders", 0, 20)]}, SINK: {COMMITTER_STATE: [element]}},
        version=version,
    )
    for version, element in zip((4, 5, 6), _COMMITTERS, strict=True)
)
_ANSWERS = tuple(
    (ANSWERS / path).read_bytes()
    for path in (
        STATISTICS,
        *(f"{ORDERS}/ledger/{place}" for place in ("5/entry/0", "5/entry/7", "15/entry/2")),
    )
)
_ZOOKEEPER_LOG = log(
    (entry(1, ranged(1, 0, 4)), entry(2, current(2), (f"{ROOT}/user/orders@0/1", None)), entry(3)), padding=8
)
_ZOOKEEPER_SNAPSHOT = snapshot({ranged(1, 0, 4)[0]: (ranged(1, 0, 4)[1] or b"", 1)})
_WORDS = (
    b"[" * 9000,
    b"{" * 9000,
    b'"' * 40,
    b"9" * 5000,
    b"1e999",
    b"NaN",
    b"\xff",
    b"\x00",
    b"\n",
    b"\\ud800",
    b"..",
    b"%2e",
)


def _changed(content: bytes, chance: random.Random) -> bytes:
    """The content with bytes flipped and cut, or a number or a word in the place of another."""
    for _ in range(chance.randrange(3)):
        place = chance.randrange(len(content) + 1)
        word = chance.choice((*_WORDS, str(chance.choice(EXTREMES)).encode()))
        content = content[:place] + word + content[place + chance.randrange(4) :]
    return content if chance.random() < 0.3 else changed_bytes(content, chance)


def _batches(chance: random.Random) -> dict[int, PlannedBatch]:
    numbers = [
        abs(chance.choice(EXTREMES)) if chance.random() < 0.2 else chance.randrange(9) for _ in range(5)
    ]
    return {
        n: PlannedBatch({("t", 0): abs(chance.choice(EXTREMES))}, chance.choice((None, n % 9)))
        for n in numbers
    }


def _read_checkpoint(chance: random.Random, folder: Path) -> None:
    path = folder / "5"
    path.write_bytes(_changed(_OFFSETS, chance))
    path.with_name(".5.crc").write_bytes(_changed(b"crc\0\0\0\2\0" + bytes(4), chance))
    small_file(path, folder, folder)
    commits = frozenset(chance.sample([*range(9), *map(abs, EXTREMES)], 6))
    history_of(_batches(chance), commits, chance.choice((None, {("t", 0): 3})), 0)
    initial_offsets(_changed(b"\0v1\n" + _OFFSETS.split(b"\n")[2], chance))


def _read_batch(chance: random.Random, _: Path) -> None:
    planned_batch(_changed(_OFFSETS, chance), chance.randrange(4))


def _read_commit(chance: random.Random, _: Path) -> None:
    require_commit(_changed(_COMMIT, chance))


def _read_manifest(chance: random.Random, _: Path) -> None:
    log_name(_changed(b"9.compact", chance).decode("utf-8", "replace"))
    logs: dict[LogName, tuple[SinkFile, ...]] = {
        LogName(abs(chance.choice(EXTREMES)), chance.random() < 0.3): () for _ in range(5)
    }
    logs[LogName(3, is_compact=False)] = logged_files(_changed(_LOG, chance))
    output, _missing = output_of(logs)
    origin_of(output, "/out", lambda below: below.endswith("1"))


def _read_positions(chance: random.Random, _: Path) -> None:
    for key, value in byte_map(_changed(_MAP, chance)):
        source_position(key, value, "src", ("filename", "position"))


def _read_position(chance: random.Random, _: Path) -> None:
    key = json.dumps(["src", {"filename": "/in"}]).encode()
    source_position(
        _changed(key, chance), _changed(b'{"position":30}', chance), "src", ("filename", "position")
    )


def _read_metadata(chance: random.Random, _: Path) -> None:
    content = chance.choice(_METADATA)
    content = changed_bytes(content, chance) if chance.random() < 0.8 else content
    for state in checkpoint_in(content).states:
        for element in state.elements(SOURCE_STATE):
            split_position(element)
        for element in state.elements(COMMITTER_STATE):
            prepared_transactions(element)


def _read_committer(chance: random.Random, _: Path) -> None:
    prepared_transactions(changed_bytes(chance.choice(_COMMITTERS), chance))


def _read_answer(chance: random.Random, folder: Path) -> None:
    """Of a topic's statistics, and of an entry with one message, with five, or with a marker."""
    place = chance.randrange(len(_ANSWERS))
    (folder / "answer").write_bytes(_changed(_ANSWERS[place], chance))
    try:
        answer = SavedAnswers(folder, "").get("answer")
    except AnswerError as error:
        raise FormatError(str(error)) from None
    (_read_entry if place else _read_statistics)(answer)


def _read_entry(answer: Answer) -> None:
    for message in entry_in(answer).messages:
        packed(5, 7, message.batch)


def _read_statistics(answer: Answer) -> None:
    stats = stats_in(answer.body)
    ledgers = ledgers_in(stats)
    assert ledgers.first <= ledgers.end
    for cursor in map(cursor_in, cursors_in(stats).values()):
        shown_position(ledgers.after(cursor.mark_delete))
        for first, last in cursor.ranges:
            assert ledgers.after(first) <= ledgers.after(last)


def _read_names(chance: random.Random, _: Path) -> None:
    pattern = re.compile(RANGE_NAME)
    name = _changed(_NAME, chance).decode("utf-8", "replace")
    known = range_name(name, pattern)
    list(divided([("a/x", known), ("b/y", known)]))


def _read_zookeeper(chance: random.Random, _: Path) -> None:
    """Of a transaction log, what it tells of a stream; of a snapshot, its nodes."""
    stream = Stream()
    for one in transactions_in(_changed(_ZOOKEEPER_LOG, chance), "/transactional"):
        if isinstance(one, Transaction):
            for change in one.changes:
                stream.apply(change.path.removeprefix(f"{ROOT}/"), change.data, one.millis)
    list(topologies_of(stream.batches))
    nodes_in(_changed(_ZOOKEEPER_SNAPSHOT, chance), "/transactional")


def _read_share_state(chance: random.Random, _: Path) -> None:
    """Of a record of a share group's state, its key and its value."""
    kind = chance.randrange(3)
    if kind == 0:
        state_key(_changed(state_name(1), chance))
    elif kind == 1:
        share_state(_changed(state_snapshot(3, (3, 9, ACKNOWLEDGED, 1)), chance), is_snapshot=True)
    else:
        reported = update(3, (3, 9, ACKNOWLEDGED, 1), (11, 12, ARCHIVED, 5))
        share_state(_changed(reported, chance), is_snapshot=False)


@pytest.mark.parametrize(
    "parser",
    [
        _read_checkpoint,
        _read_batch,
        _read_commit,
        _read_manifest,
        _read_positions,
        _read_position,
        _read_metadata,
        _read_committer,
        _read_names,
        _read_answer,
        _read_zookeeper,
        _read_share_state,
    ],
)
def test_a_parser_takes_anything(parser: Callable[[random.Random, Path], None], tmp_path: Path) -> None:
    """Some of the cases are read, others are refused with a reason, none takes long."""
    reasons = []
    for seed in range(3 * CASES):
        began = time.process_time()
        try:
            parser(random.Random(seed), tmp_path)  # noqa: S311 - to be the same again
        except FormatError as error:
            reasons.append(str(error))
        except Exception as error:
            error.add_note(f"seed {seed} of {parser.__name__}")
            raise
        assert time.process_time() - began < SECONDS, f"seed {seed} of {parser.__name__} takes too long"

    assert 0 < len(reasons) < 3 * CASES
    assert all(reasons)
    assert max(map(len, reasons)) < 500

"""What Spark, Kafka Connect and Flink keep, found by `tieout init` and read by what it drafted."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.checkpoints import write_checkpoint, written
from tests.engine.sources.flink import JOB, SOURCE, metadata, split
from tests.engine.sources.flink import write_checkpoint as write_flink_checkpoint
from tests.engine.sources.flink import written as flink_written
from tests.engine.sources.kahadb import added, journal, removed, write
from tests.engine.sources.maps import serialised_map
from tests.engine.sources.share_state import TOPIC_ID, key, update
from tests.engine.sources.zookeeper import current, entry, log, ranged
from tests.engine.sources.zookeeper import write as write_zookeeper
from tests.kafka_batches import batch, record

from tieout.cli.starting import drafted
from tieout.contracts import Contract, load_contract
from tieout.contracts.drafting import Draft
from tieout.engine.reading import read_evidence
from tieout.engine.sampling import sample
from tieout.engine.system_samples import positions_sample
from tieout.engine.systems.flink_operators import id_of_uid
from tieout.errors import SourceError
from tieout.model import Guarantee, Identity, Ledger, Window

_START = datetime(2026, 11, 20, 10, tzinfo=UTC)
_KEY = b'["src",{"filename":"/in"}]'


def _lines(path: Path, *ids: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"message_id": one, "amount": 3}) + "\n" for one in ids))
    return path


def _sent(folder: Path) -> Path:
    path = folder / "sent.jsonl"
    row = {"message_id": "m0", "sent_ms": 1763632800000, "topic": "orders", "partition": 0, "offset": 0}
    path.write_text(json.dumps(row) + "\n")
    return path


def _drafted(folder: Path, **sources: Path) -> tuple[Draft, Contract]:
    named = {Ledger.PRODUCED: _sent(folder), **{Ledger(name): path for name, path in sources.items()}}
    given = {ledger: os.path.relpath(path) for ledger, path in named.items()}
    made = drafted("orders", Guarantee.AT_LEAST_ONCE, None, given, folder)
    (folder / "orders.yml").write_text(made.text)
    return made, load_contract(folder / "orders.yml")


def _source(contract: Contract, ledger: str) -> dict[str, object]:
    return contract.ledgers[Ledger(ledger)].source.model_dump(exclude_unset=True, mode="json")


def test_a_checkpoint_is_found_with_the_place_of_its_kafka_source(tmp_path: Path) -> None:
    """Nobody needs to know it; when it was taken is never guessed."""
    write_checkpoint(tmp_path / "checkpoint", [{"0": 5}], commits=1, first=None)
    content = (tmp_path / "checkpoint/offsets/0").read_text().split("\n")
    written(
        tmp_path / "checkpoint/offsets/0", "\n".join([*content[:2], '{"logOffset":2}', content[2]]).encode()
    )

    made, contract = _drafted(
        tmp_path, delivered=_lines(tmp_path / "out.jsonl", "m0"), committed=tmp_path / "checkpoint"
    )

    assert _source(contract, "committed") == {"kind": "spark_checkpoint", "path": "checkpoint", "source": 1}
    assert "committed: taken_at, which is never guessed" in made.open_questions
    assert "taken_at: now      the files are the system's own" in made.text
    assert not any("committed_offset" in question for question in made.open_questions)


def test_a_sink_s_folder_is_read_by_its_manifest(tmp_path: Path) -> None:
    """Also below the folders of its partitions; the time of a row may be its file's."""
    _lines(tmp_path / "out" / "day=1" / "part-0.json", "m0")
    written(tmp_path / "out" / "_spark_metadata" / "0", b"v1")

    _, contract = _drafted(tmp_path, delivered=tmp_path / "out", staged=tmp_path / "out")

    for ledger in ("delivered", "staged"):
        assert _source(contract, ledger) == {"kind": "spark_files", "path": "out", "format": "jsonl"}
    assert contract.ledgers[Ledger.DELIVERED].columns["processed_at"] == "file_modified_at"
    assert contract.identity is Identity.MESSAGE_ID


def test_files_named_by_their_offsets_are_positions_and_output(spark: SparkSession, tmp_path: Path) -> None:
    """What was drafted reads them, once somebody says when they were taken; whatever their ending."""
    _lines(tmp_path / "out" / "orders+0+0+1.txt", "m0", "m1")
    _lines(tmp_path / "out" / "+tmp" / "x_tmp.txt", "m2")

    made, contract = _drafted(tmp_path, delivered=tmp_path / "out", committed=tmp_path / "out")

    assert _source(contract, "delivered") == {"kind": "connect_files", "path": "out", "format": "jsonl"}
    assert _source(contract, "committed") == {"kind": "connect_files", "path": "out"}
    assert "the reader gives topic, partition, offset, consumer_group" in made.text
    (tmp_path / "orders.yml").write_text(made.text.replace('path: "out"', 'path: "out", taken_at: now'))
    window = Window(_START, _START + timedelta(hours=1))
    found = read_evidence(spark, load_contract(tmp_path / "orders.yml"), window, datetime.now(UTC))
    columns = ("message_id", "topic", "partition", "offset")
    rows = sorted(tuple(row) for row in found[Ledger.DELIVERED].rows.select(*columns).collect())
    assert rows == [("m0", "orders", 0, 0), ("m1", "orders", 0, 1)]
    assert found[Ledger.DELIVERED].coverage.undated == 0
    assert found[Ledger.COMMITTED].rows.count() == 1


def test_a_worker_s_file_is_found_by_its_beginning(tmp_path: Path) -> None:
    """With its connector, and the fields where they are not the usual ones."""
    path = tmp_path / "connect.offsets"
    path.write_bytes(serialised_map((b'["jdbc",{"table":"orders"}]', b'{"incrementing":17,"at":"x"}')))

    _, contract = _drafted(tmp_path, delivered=_lines(tmp_path / "out.jsonl", "m0"), committed=path)

    assert _source(contract, "committed") == {
        "kind": "connect_offsets",
        "path": "connect.offsets",
        "connector": "jdbc",
        "place": "table",
        "position": "incrementing",
    }


def test_a_topic_s_positions_name_their_connector() -> None:
    """The first one's; others are told."""
    entries = [(b"x", b"y"), (_KEY, b'{"position":30}'), (b'["other",{"a":1}]', None)]

    found = positions_sample("events:connect-offsets", "--committed", entries, form="kafka")

    assert found.options == (("connector", "src"),)
    assert found.warnings == ("positions of other connectors as well: other",)


def test_a_job_s_checkpoints_are_found_by_their_metadata(tmp_path: Path) -> None:
    """The newest one says which operators read Kafka: of several the first is named."""
    write_flink_checkpoint(tmp_path / "checkpoints", 1, {0: 5}, _START)

    made, contract = _drafted(
        tmp_path, delivered=_lines(tmp_path / "out.jsonl", "m0"), committed=tmp_path / "checkpoints"
    )
    assert _source(contract, "committed") == {"kind": "flink_checkpoints", "path": "checkpoints"}
    assert "committed: taken_at, which is never guessed" in made.open_questions

    positions = {"SourceReaderState": [split("orders", 0, 5)]}
    states = {SOURCE: positions, ("Source: refunds", ""): positions}
    path = tmp_path / "checkpoints" / JOB / "chk-2" / "_metadata"
    flink_written(path, metadata(2, states), _START + timedelta(minutes=1))
    found = sample(str(tmp_path / "checkpoints"), "--committed", Ledger.COMMITTED)
    assert found.options == (("source", "Source: refunds"),)
    assert found.warnings == ("other operators read Kafka as well: input",)

    flink_written(path, metadata(2, states, version=4), _START + timedelta(minutes=1))
    found = sample(str(tmp_path / "checkpoints"), "--committed", Ledger.COMMITTED)
    first, other = sorted(map(id_of_uid, ("input", "Source: refunds")))
    assert found.options == (("source", first),)
    assert found.warnings == (f"other operators read Kafka as well: {other}",)


def test_batches_of_trident_are_found_in_a_server_s_log(tmp_path: Path) -> None:
    """By the names of their streams: of several the first is named."""
    more = (entry(3, ranged(1, 0, 4, root="/transactional/refunds")),)
    write_zookeeper(tmp_path / "zookeeper", "log.1", log((entry(1, ranged(1, 0, 4)), entry(2, current(2)))))

    _, contract = _drafted(
        tmp_path, delivered=_lines(tmp_path / "out.jsonl", "m0"), committed=tmp_path / "zookeeper"
    )
    assert _source(contract, "committed") == {
        "kind": "trident",
        "path": ["zookeeper"],
        "stream": "orders",
    }

    write_zookeeper(tmp_path / "zookeeper", "log.3", log(more))
    found = sample(str(tmp_path / "zookeeper"), "--committed", Ledger.COMMITTED)
    assert found.options == (("stream", "orders"),)
    assert found.warnings == ("other streams as well: refunds",)


def _server_without_trident(folder: Path) -> Path:
    write_zookeeper(folder / "c", "log.1", log((entry(1, ("/storm/a", b"")),)))
    return folder / "c"


def _older_server(folder: Path) -> Path:
    write_zookeeper(folder / "c", "log.1", log((), version=1))
    return folder / "c"


def _job_without_kafka(folder: Path) -> Path:
    flink_written(folder / "c" / JOB / "chk-1" / "_metadata", metadata(1, {}), _START)
    return folder / "c"


def _older_job(folder: Path) -> Path:
    flink_written(folder / "c" / JOB / "chk-1" / "_metadata", metadata(1, {}, version=3), _START)
    return folder / "c"


def _empty_checkpoint(folder: Path) -> Path:
    (folder / "c" / "offsets").mkdir(parents=True)
    (folder / "c" / "commits").mkdir()
    return folder / "c"


def _rate_checkpoint(folder: Path) -> Path:
    written(folder / "c" / "offsets" / "0", b'v1\n{}\n{"offset":5,"timestamp":1000}')
    (folder / "c" / "commits").mkdir()
    return folder / "c"


def _cut_map(folder: Path) -> Path:
    (folder / "map").write_bytes(serialised_map((_KEY, b"{}"))[:-5])
    return folder / "map"


def _empty_map(folder: Path) -> Path:
    (folder / "map").write_bytes(serialised_map())
    return folder / "map"


@pytest.mark.parametrize(
    "made",
    [
        *(_empty_checkpoint, _rate_checkpoint, _cut_map, _empty_map),
        *(_job_without_kafka, _older_job, _server_without_trident, _older_server),
    ],
)
def test_what_shows_no_position_is_an_error(tmp_path: Path, made) -> None:  # type: ignore[no-untyped-def]
    """A query that has not begun, or reads no Kafka; a file that is cut off, or empty."""
    with pytest.raises(SourceError, match="--committed"):
        sample(str(made(tmp_path)), "--committed", Ledger.COMMITTED)


def test_files_beside_named_ones_are_warned_of(tmp_path: Path) -> None:
    """The ledger does not cover with them."""
    _lines(tmp_path / "out" / "orders+0+0+1.json", "m0", "m1")
    _lines(tmp_path / "out" / "notes.json", "x")

    found = sample(str(tmp_path / "out"), "--committed", Ledger.COMMITTED)

    assert found.warnings == (
        "1 files are not named by offsets, such as notes.json: the ledger does not cover with them",
    )


def test_a_journal_is_found_with_its_queue_and_what_its_messages_hold(tmp_path: Path) -> None:
    """Messages are acknowledged one by one; what the broker was told of its store is never guessed."""
    properties = {"order_id": "m0", "it's": "one"}
    content = journal(
        added(0, properties=properties, text=b'{"amount": 3}'),
        added(1, "ActiveMQ.DLQ", original="orders"),
        *(added(number, "ActiveMQ.DLQ", original="orders") for number in (2, 3)),
        added(4, "others"),
        added(5, properties=properties),
        removed(0),
    )
    write(tmp_path / "kahadb", 1, content)

    made, contract = _drafted(
        tmp_path,
        log=tmp_path / "kahadb",
        committed=tmp_path / "kahadb",
        dead_letters=tmp_path / "kahadb",
        delivered=_lines(tmp_path / "out.jsonl", "m0"),
    )

    source = {"kind": "kahadb", "path": ["kahadb"], "destination": "orders"}
    assert contract.is_queue
    assert [_source(contract, ledger) for ledger in ("log", "committed", "dead_letters")] == [source] * 3
    assert contract.ledgers[Ledger.LOG].columns["message_id"] == "properties['order_id']"
    assert "not used: it's, amount, value" in made.text
    assert "properties['it\\'s']" not in made.text
    reported = [question for question in made.open_questions if question.startswith("log:")]
    assert any("other queues as well: others, ActiveMQ.DLQ" in question for question in reported)
    assert any("concurrent_store_and_dispatch: false is a promise" in question for question in reported)
    assert not any("was not found" in question for question in reported)


def test_the_state_of_share_groups_is_found_with_its_topic(tmp_path: Path) -> None:
    """In a broker's log directory, beside the topic's own folders, which say its id; records are locked one by one."""
    state = tmp_path / "data" / "__share_group_state-0"
    state.mkdir(parents=True)
    reported = [record(update(3), key=key(1, group="loader"), delta=place) for place in range(2)]
    (state / f"{0:020}.log").write_bytes(batch(reported))
    own = tmp_path / "data" / "orders-0"
    own.mkdir()
    (own / f"{0:020}.log").touch()
    (own / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}\n")

    made, contract = _drafted(
        tmp_path,
        committed=tmp_path / "data",
        produced=_lines(tmp_path / "in.jsonl", "m0"),
        delivered=_lines(tmp_path / "out.jsonl", "m0"),
    )

    assert contract.is_queue
    source = _source(contract, "committed")
    assert {source[name] for name in ("kind", "topic", "partitions")} == {"kafka_share_group", "orders", 1}
    assert any("share groups with a state of orders: loader" in question for question in made.open_questions)


def test_a_state_without_the_topic_s_folders_is_refused(tmp_path: Path) -> None:
    """Its id alone does not say which topic it is."""
    state = tmp_path / "data" / "__share_group_state-0"
    state.mkdir(parents=True)
    (state / f"{0:020}.log").write_bytes(batch(record(update(3), key=key(1))))

    with pytest.raises(SourceError, match="a topic whose folders are beside it, found none"):
        sample(str(tmp_path / "data"), "--committed", Ledger.COMMITTED)


@pytest.mark.parametrize("content", [journal(), journal(added(0))[:-80]], ids=["empty", "torn"])
def test_a_journal_without_a_queue_is_refused(tmp_path: Path, content: bytes) -> None:
    """By what is there instead."""
    write(tmp_path / "kahadb", 1, content)

    with pytest.raises(SourceError, match=r"expected (a queue in the journal|files), found"):
        sample(str(tmp_path / "kahadb"), "--log", Ledger.LOG)

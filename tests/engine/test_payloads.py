"""Finding lost messages' bodies in the sources that the ledgers are read from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from tieout.contracts import Contract, load_contract
from tieout.engine.payloads import payloads_of
from tieout.errors import SourceError
from tieout.replaying import Body, LostMessage

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
SEGMENTS = Path(__file__).parents[1] / "kafka_files" / "log"

Make = Callable[..., Contract]


def sha(text: str) -> str:
    """Return the payload hash that the contract's expression gives."""
    return hashlib.sha256(text.encode()).hexdigest()


def lost(number: int, body: str | None, **changes: Any) -> LostMessage:
    """Return message `number`, whose payload hash is that of the body."""
    fields = {
        "key": f"k-{number}",
        "break_id": f"b-{number}",
        "message_id": f"{number:03d}",
        "session": None,
        "topic": "orders",
        "partition": 0,
        "offset": number,
        "payload_hash": None if body is None else sha(body),
    }
    return LostMessage(**{**fields, **changes})


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make a contract over files of JSON lines that a producer wrote, with its field `replay`."""
    lines = [
        {"event": "send", "id": "001", "customer": "ann", "body": '{"n":1}', "trace": {"t": "7"}, "at": 1},
        {"event": "send", "id": "001", "customer": "ann", "body": '{"n":1}', "trace": {"t": "7"}, "at": 2},
        {"event": "send", "id": "002", "customer": None, "body": "two", "trace": None, "at": 3},
        {"event": "draft", "id": "003", "customer": "cy", "body": "three", "trace": None, "at": 4},
        {"event": "send", "id": "004", "customer": "di", "body": "four", "trace": None, "at": 5},
        {"event": "send", "id": "004", "customer": "di", "body": "other", "trace": None, "at": 6},
        {"event": "send", "id": "005", "customer": "ed", "body": None, "trace": None, "at": 7},
    ]
    (tmp_path / "produced.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "delivered.jsonl").write_text('{"message_id": "001"}\n')

    def made(replay: dict[str, Any], **changes: Any) -> Contract:
        plain = {
            "version": 1,
            "pipeline": "orders",
            "guarantee": "exactly_once",
            "group": "loader",
            "ledgers": {
                "produced": {
                    "source": {"kind": "files", "format": "jsonl", "path": "produced.jsonl"},
                    "columns": {"message_id": "id", "payload_hash": "sha2(body, 256)", "topic": "'orders'"},
                    "where": "event = 'send'",
                    "coverage": "declared",
                },
                "delivered": {
                    "source": {"kind": "files", "format": "jsonl", "path": "delivered.jsonl"},
                    "coverage": "declared",
                },
                **changes.pop("ledgers", {}),
            },
            "replay": replay,
            **changes,
        }
        file = tmp_path / "orders.yml"
        file.write_text(yaml.safe_dump(plain))
        return load_contract(file)

    return made


def found(spark: SparkSession, contract: Contract, requested: Iterable[LostMessage]) -> dict[str, Body]:
    """Return the bodies by idempotence key."""
    return dict(payloads_of(spark, contract, tuple(requested), NOW))


def test_a_body_is_found_by_id_and_hash(spark: SparkSession, make: Make) -> None:
    """A retry with the same body is no second version, a hash that is not the evidence's no body at all."""
    contract = make({"value": "body", "key": "customer", "headers": "map('trace', trace.t)"})
    requested = [lost(1, '{"n":1}'), lost(2, "not two"), lost(3, "three"), lost(9, "nine")]

    bodies = found(spark, contract, requested)

    assert bodies == {"k-1": Body(1, b"ann", b'{"n":1}', (("trace", "7"),))}


def test_without_a_hash_all_versions_are_counted(spark: SparkSession, make: Make) -> None:
    """An id whose rows hold different bodies says nothing about which was meant; one without value is a tombstone."""
    contract = make({"value": "body"})

    bodies = found(spark, contract, [lost(4, None), lost(5, None), lost(2, None)])

    assert (bodies["k-4"].versions, bodies["k-5"].value, bodies["k-2"].value) == (2, None, b"two")
    assert found(spark, contract, [lost(4, "other")])["k-4"] == Body(1, None, b"other")


def test_a_row_is_no_worse_than_its_ledger_found_it(spark: SparkSession, make: Make, tmp_path: Path) -> None:
    """An empty text where other rows have numbers is no matter in a field that neither ledger nor replay uses."""
    contract = make({"value": "body"})
    lines = [
        {"event": "send", "id": f"00{n}", "body": "b", "amount": amount} for n, amount in ((1, 5), (2, ""))
    ]
    (tmp_path / "produced.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    assert found(spark, contract, [lost(1, "b"), lost(2, "b")]).keys() == {"k-1", "k-2"}
    counted = make({"value": "concat(body, amount)"})
    assert found(spark, counted, [lost(1, "b"), lost(2, "b")]).keys() == {"k-1"}


def test_equal_contents_are_found_by_their_hash(spark: SparkSession, make: Make) -> None:
    """Without ids the payload is all there is."""
    contract = make({"value": "body"}, identity="content")

    assert found(spark, contract, [lost(2, "two", message_id=None)])["k-2"].value == b"two"


def test_a_record_of_a_brokers_segment_is_found_by_its_position(spark: SparkSession, make: Make) -> None:
    """Key, value, headers and tombstones are as `kafka-dump-log` prints them of the same segment."""
    log = {
        "source": {"kind": "kafka_segments", "path": str(SEGMENTS), "topic": "payments", "taken_at": "now"},
        "columns": {"payload_hash": "sha2(value, 256)"},
    }
    replay = {"from": "log", "value": "value", "key": "key", "headers": "headers"}
    contract = make(replay, ledgers={"log": log}, identity="position")
    requested = [lost(n, None, topic="payments", partition=0, offset=n) for n in (0, 2)]

    bodies = found(spark, contract, requested)

    assert (bodies["k-0"].key, bodies["k-0"].value) == (b"customer-0", b'{"id":"plain-0","amount":0}')
    assert [name for name, _ in bodies["k-0"].headers] == ["trace"]
    assert bodies["k-2"] == Body(1, b"customer-9", None, ())


@pytest.mark.parametrize(
    ("replay", "expected"),
    [
        ({"value": "bodi"}, r"replay\.value: .*bodi.*the source's columns are: .*body"),
        (
            {"value": "trace"},
            r"replay\.value: expected text or bytes, found struct<t:string>; use cast or to_json",
        ),
        (
            {"value": "body", "headers": "trace"},
            r"replay\.headers: expected a map of text to text, or array.*, found struct",
        ),
    ],
)
def test_an_expression_that_gives_no_body_is_an_error(
    spark: SparkSession, make: Make, replay: dict[str, Any], expected: str
) -> None:
    """It names the field, what it gives, and the columns that there are."""
    with pytest.raises(SourceError, match=expected):
        found(spark, make(replay), [lost(1, None)])


def test_a_source_that_is_gone_is_an_error(spark: SparkSession, make: Make, tmp_path: Path) -> None:
    """No body found for want of files is not the same as no such message."""
    contract = make({"value": "body"})
    (tmp_path / "produced.jsonl").unlink()

    with pytest.raises(SourceError, match="nothing to take bodies from"):
        found(spark, contract, [lost(1, None)])


@pytest.mark.parametrize(
    ("columns", "is_verified"),
    [
        ({"payload_hash": "sha2(body, 256)"}, True),
        ({"payload_hash": "upper(sha2(cast(body AS binary), 256))"}, True),
        ({"payload_hash": "md5(concat_ws('|', customer, body))"}, True),
        ({"payload_hash": "hash"}, False),
        ({"payload_hash": "lower(hash)"}, False),
        ({"payload_hash": "coalesce(hash, sha2(body, 256))"}, False),
        ({"payload_hash": "sha2(customer, 256)"}, False),
        ({"payload_hash": "'h1'"}, False),
        ({"payload_hash": "meta.hash"}, False),
    ],
)
def test_a_hash_that_a_row_claims_speaks_for_no_body(
    spark: SparkSession, make: Make, tmp_path: Path, columns: dict[str, str], is_verified: bool
) -> None:
    """Whoever writes the source can put the hash of one message beside the body of another."""
    lines = [
        {"event": "send", "id": "001", "customer": "h1", "body": "evil", "hash": "h1", "meta": {"hash": "h1"}}
    ]
    (tmp_path / "produced.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    source = {"kind": "files", "format": "jsonl", "path": "produced.jsonl"}
    produced = {"source": source, "columns": {"message_id": "id", **columns}, "coverage": "declared"}
    contract = make({"value": "body", "key": "customer"}, ledgers={"produced": produced})
    hashes = {
        "sha2(body, 256)": sha("evil"),
        "upper(sha2(cast(body AS binary), 256))": sha("evil").upper(),
        "md5(concat_ws('|', customer, body))": hashlib.md5(b"h1|evil").hexdigest(),  # noqa: S324 - a contract's
        "coalesce(hash, sha2(body, 256))": "h1",
        "sha2(customer, 256)": sha("h1"),
    }
    requested = lost(1, None, payload_hash=hashes.get(columns["payload_hash"], "h1"))

    body = found(spark, contract, [requested])["k-1"]

    assert body.value == b"evil"
    assert body.is_verified is is_verified


def test_a_usual_digest_that_fits_its_body_is_verified(
    spark: SparkSession, make: Make, tmp_path: Path
) -> None:
    """A producer's own column of SHA-256 needs no expression; without a hash in the evidence nothing is verified."""
    line = {"event": "send", "id": "001", "body": "one", "hash": sha("one")}
    (tmp_path / "produced.jsonl").write_text(json.dumps(line) + "\n")
    source = {"kind": "files", "format": "jsonl", "path": "produced.jsonl"}
    columns = {"message_id": "id", "payload_hash": "hash"}
    produced = {"source": source, "columns": columns, "coverage": "declared"}
    contract = make({"value": "body"}, ledgers={"produced": produced})

    assert found(spark, contract, [lost(1, "one")])["k-1"].is_verified
    assert not found(spark, contract, [lost(1, None)])["k-1"].is_verified

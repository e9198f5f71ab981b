"""Expressions of contracts: what reads, runs or guesses more than a row says is refused before it is worked out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession
from tests.engine.sources.builders import contract_of, evidence_of, jsonl, rows_of

from tieout.contracts.expressions import refused
from tieout.engine.session import set_to
from tieout.engine.sources import expressions
from tieout.engine.sources.expressions import require_plain
from tieout.errors import SourceError

ATTACKS = {
    "reflect('java.lang.System', 'getProperty', 'user.dir')": "reflect: it runs Java code",
    "java_method('java.lang.Runtime', 'getRuntime')": "java_method: it runs Java code",
    "`Reflect` ('java.lang.System', 'lineSeparator')": "reflect: it runs Java code",
    "try_reflect('java.lang.System', 'getenv', 'HOME')": "try_reflect: it runs Java code",
    "transform(array(id), x -> concat(x, reflect('java.lang.System', 'getenv', 'HOME')))": "reflect: it runs",
    "(select first(value) from text.`/etc/passwd`)": "a query inside it: it reads what",
    "(SELECT max(value) FROM csv.`/etc/hostname`)": "a query inside it: it reads what",
    "exists(select 1)": "a query inside it",
    "id in (select max(id) from t)": "a query inside it",
    "concat(id, (from text.`/etc/passwd` |> select value))": "a query inside it",
    "(select * from read_files('/etc/passwd'))": "a query inside it",
    "identifier('i' || 'd')": "identifier: what it names is computed",
    "from_protobuf(id, 'M', '/etc/passwd')": "from_protobuf: it reads",
    "rand()": "rand: it gives another value",
    "concat(id, uuid())": "uuid: it gives another value",
    "shuffle(array(id))[0]": "shuffle: it gives another value",
    "randstr(3)": "randstr: it gives another value",
    "monotonically_increasing_id()": "monotonically_increasing_id: its value depends on how Spark divides",
    "input_file_name()": "input_file_name: its value depends",
    "spark_partition_id()": "spark_partition_id: its value depends",
    "current_timestamp()": "current_timestamp: its value depends on when",
    "current_timestamp": "current_timestamp: its value depends on when",
    "now()": "now: its value depends on when",
    "unix_timestamp()": "its value depends on when",
    "current_user()": "current_user: its value depends on when, where and as whom",
    "current_database()": "current_database: its value",
    "explode(array(id))": "explode: it leaves out rows",
    "window(sent_at, '1 minute').start": "window: it leaves out rows without a time",
    "window(sent_at, '10 minutes', '5 minutes').end": "window: it leaves out rows without a time",
    "session_window(sent_at, '1 minute').start": "session_window: it leaves out rows without a time",
    "row_number() over (order by 1)": "over: its value depends on other rows",
    "count(*)over()": "over: its value depends on other rows",
    "lag(id) ignore nulls over (partition by id order by sent_at)": "over: its value depends on other rows",
    "from_xml(id, 'a INT', map('rowValidationXSDPath', '/etc/passwd'))": "from_xml: it reads",
    "schema_of_xml('<a/>', map('rowValidationXSDPath', '/etc/passwd'))": "schema_of_xml: it reads",
    "concat(`it's`, rand(), `it's`)": "rand: it gives another value",
    "id -- \r || rand()": "rand: it gives another value",
    "id /* /* */ ' */ || rand() /* ' */": "rand: it gives another value",
}
MOVING = (
    "timestamp 'now'",
    'timestamp "now"',
    "timestamp /* of the run */ 'now'",
    "timestamp r'now'",
    r"timestamp '\u006eow'",
    r"timestamp '\156\ow'",
    "timestamp_ntz 'Yesterday UTC'",
    "date' today'",
    "'now'::timestamp",
    "try_cast('now' as timestamp)",
    "try_to_timestamp('now')",
)
"""The moment of the run, in a text that Spark's parser replaces, or its optimizer."""
MOVING_BY_PLAN = (
    "cast('no' || 'w' as timestamp)",
    "cast(replace('nXow', 'X', '') as timestamp_ntz)",
    "to_date(trim(' today'))",
    "sent_at > 'now'",
    "sent_at between 'yesterday' and concat('tomor', 'row')",
    "year('today')",
    "date_add('today', 1)",
    "try_to_timestamp('no' || 'w')",
    "transform(array(id), x -> cast('no' || 'w' as timestamp))",
)
BY_PLAN = {
    "current_date": "current_date: its value",
    "unix_timestamp()": "current_timestamp: its value",
    "session.hidden": "a variable of the session: its value",
    "hidden": "a variable of the session: its value",
}
HARMLESS = (
    "sha2(concat(id, 'rand() reflect(x) (select 1)'), 256)",
    "`uuid`",
    "concat(`uuid`, user, version)",
    "case when id = 'now' then 'today' end",
    "to_json(struct(*))",
    "get_json_object(id, '$.select')",
    "transform(array(id), x -> upper(x))[0]",
    "id -- select rand() from it",
    "/* uuid() */ id",
    r"r'\\d' || id",
    "timestamp '2026-11-20 10:00:00Z'",
    "unix_timestamp(id)",
    "explode_outer(array(id))",
    "case when id = 'it is date \"now\"' then `it's` end",
    "concat('over (', id) = `it's`",
    "cast(sent_at as date) > date '2026-11-20'",
)
COLUMNS = ("id", "uuid", "user", "version")
SCHEMA = ", ".join([*(f"{name} string" for name in COLUMNS), "sent_at timestamp", "`it's` string"])
ROW = ("a", "b", "c", "d", None, "e")


@pytest.mark.parametrize(("text", "reason"), ATTACKS.items())
def test_a_contract_that_asks_for_more_than_its_rows_is_none(text: str, reason: str) -> None:
    """Seen in its text alone, so `tieout check` says so without Spark, and a run through Spark Connect as well."""
    found = refused(text)

    assert found is not None
    assert reason in found
    for spec in (
        {"columns": {"message_id": text}},
        {"where": text},
        {"coverage": {"complete_until": f"max({text})"}},
    ):
        if spec.get("coverage") and ("now()" in text or "current_timestamp()" in text):
            continue  # a coverage may name the moment at which the source is read
        with pytest.raises(
            ValidationError, match=r"ledgers\.produced\..*expected an expression over the columns of one row"
        ):
            contract_of(Path(), {"produced": {"source": jsonl("a.jsonl"), **spec}})


@pytest.fixture(scope="module")
def source(spark: SparkSession) -> DataFrame:
    """A row, in a session that has a variable."""
    spark.sql("DECLARE OR REPLACE VARIABLE hidden STRING DEFAULT 'x'")
    return spark.createDataFrame([ROW], SCHEMA)


@pytest.mark.parametrize(("text", "reason"), (ATTACKS | BY_PLAN).items())
def test_spark_is_asked_what_an_expression_is(
    source: DataFrame, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    """Whatever its text hides: its parsed form and the analysed plan show the same, each before anything is run."""
    monkeypatch.setattr(expressions, "refused", lambda _text: None)

    with pytest.raises(
        SourceError, match=r"^ledgers\.produced\.where: expected an expression over the columns"
    ) as raised:
        require_plain(source, {"ledgers.produced.columns.x": "upper(id)", "ledgers.produced.where": text})

    assert str(raised.value).count("found") == 1
    if text in BY_PLAN or "unix" not in text:
        assert (BY_PLAN.get(text) or reason) in str(raised.value)


@pytest.mark.parametrize("text", MOVING)
def test_a_text_that_means_the_moment_of_the_run_is_refused(text: str) -> None:
    """However it is quoted, escaped and spaced: Spark's parser has replaced it before anything else sees it."""
    assert "its value depends on when" in str(refused(text))


@pytest.mark.parametrize("text", MOVING_BY_PLAN)
def test_a_text_that_becomes_the_moment_of_the_run_is_refused(source: DataFrame, text: str) -> None:
    """Where it is worked out, or becomes a time by what it is compared with, the optimizer is asked."""
    with pytest.raises(SourceError, match=r"^where: .* its value depends on when the run is made"):
        require_plain(source, {"columns.x": "upper(id)", "where": text})


def test_a_file_that_a_query_names_is_not_opened(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To analyse a query is to open its files: a FIFO would stop the run, an address would be asked."""
    os.mkfifo(tmp_path / "waits.csv")
    query = "(select max(_c0) from csv.`FILE`) = 1"
    monkeypatch.setattr(expressions, "refused", lambda _text: None)

    with pytest.raises(SourceError, match="a query inside it"):
        require_plain(spark.range(1), {"where": query.replace("FILE", str(tmp_path / "waits.csv"))})


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_alike_is_no_attack(source: DataFrame, text: str) -> None:
    """Names in texts and comments, and columns that are called like functions."""
    require_plain(source, {"ledgers.produced.where": text})
    assert len(source.selectExpr(text).columns) == 1


def test_no_variable_of_the_environment_is_put_into_an_expression(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark would replace `${env:…}` in any SQL, wherever the session's default says so."""
    (tmp_path / "p.jsonl").write_text(json.dumps({"message_id": "1"}))

    with set_to(spark, {"spark.sql.variable.substitute": "true"}):
        found = evidence_of(
            spark, tmp_path, "produced", source=jsonl("p.jsonl"), columns={"payload_hash": "'${env:HOME}'"}
        )

    assert rows_of(found, "payload_hash") == [("${env:HOME}",)]


def test_a_coverage_may_name_the_moment_of_reading_alone(spark: SparkSession, tmp_path: Path) -> None:
    """`now()` there is when the source was read, which the run notes; any other form of it is Spark's own clock."""
    (tmp_path / "p.jsonl").write_text(json.dumps({"message_id": "1", "attempted_at": "2026-11-20T10:05:00Z"}))

    found = evidence_of(
        spark,
        tmp_path,
        "produced",
        source=jsonl("p.jsonl"),
        coverage={"complete_until": "least(max(attempted_at), now() - interval 1 hour)"},
    )

    assert found.coverage.complete_until is not None
    with pytest.raises(ValidationError, match="current_timestamp: its value depends"):
        evidence_of(
            spark,
            tmp_path,
            "produced",
            source=jsonl("p.jsonl"),
            coverage={"complete_until": "current_timestamp"},
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x -> x", "columns.payload_hash: "),
        ("id collate nope", "columns.payload_hash: [COLLATION_INVALID_NAME]"),
        (
            "(" * 5_000 + "id" + ")" * 5_000,
            "columns.payload_hash: expected an expression that nests less deeply",
        ),
        ("_metadata.file_block_start", "columns.payload_hash: expected .* how Spark divides the files"),
        ("to_json(`_metadata`)", "columns.payload_hash: expected .* how Spark divides the files"),
    ],
)
def test_whatever_spark_says_of_an_expression_is_reported_at_its_place(
    spark: SparkSession, tmp_path: Path, text: str, message: str
) -> None:
    """Java's own errors as well, which Python's side of Spark does not translate."""
    (tmp_path / "p.jsonl").write_text(json.dumps({"id": "1"}))
    columns = {"message_id": "id", "payload_hash": text}

    with pytest.raises(SourceError, match=message.replace("[", r"\[").replace("]", r"\]")) as raised:
        evidence_of(spark, tmp_path, "produced", source=jsonl("p.jsonl"), columns=columns)

    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 500


def test_ids_of_a_collation_are_distinguished_by_every_letter(spark: SparkSession, tmp_path: Path) -> None:
    """Spark would take them for equal, where what compares the ledgers does not."""
    (tmp_path / "p.jsonl").write_text(json.dumps({"id": "A"}) + "\n" + json.dumps({"id": "a"}))
    columns = {"message_id": "id collate UTF8_LCASE", "producer_id": "_metadata.file_name"}

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("p.jsonl"), columns=columns)

    assert {row["message_id"] for row in found.rows.distinct().collect()} == {"A", "a"}
    assert rows_of(found, "producer_id") == [("p.jsonl",), ("p.jsonl",)]


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"columns": {"message_id": '"id"'}}, "columns.message_id"),
        ({"columns": {"message_id": "concat('o-', \"id\")"}}, "columns.message_id"),
        ({"columns": {"message_id": "id", "offset": "17"}}, "columns.offset"),
        ({"columns": {"message_id": "id", "payload_hash": 'sha2("body", 256)'}}, "columns.payload_hash"),
        ({"columns": {"message_id": "id"}, "where": "\"status\" = 'SENT'"}, "where"),
    ],
)
def test_a_column_name_in_double_quotes_is_refused(
    spark: SparkSession, tmp_path: Path, more: dict[str, Any], place: str
) -> None:
    """In Spark SQL it is a text: all rows would be one message, would have one hash, or would be left out."""
    (tmp_path / "p.jsonl").write_text('{"id": "1", "body": "b", "status": "SENT"}\n')

    with pytest.raises(SourceError, match=rf"ledgers\.produced\.{place}: .* in double quotes it is a text"):
        evidence_of(spark, tmp_path, "produced", source=jsonl("p.jsonl"), **more)


def test_constants_that_no_row_needs_to_differ_in_are_allowed(spark: SparkSession, tmp_path: Path) -> None:
    """One topic, one hash as it is written, no key, and a condition that is always true."""
    (tmp_path / "p.jsonl").write_text('{"id": "1"}\n')
    columns = {
        "message_id": "`ID`",
        "topic": "'orders'",
        "partition": "0",
        "offset": "cast(null as bigint)",
        "payload_hash": "'h1'",
        "key_hash": "cast(null as string)",
        "producer_session": "_metadata.file_name",
    }

    found = evidence_of(
        spark, tmp_path, "produced", source=jsonl("p.jsonl"), columns=columns, where="true or 1 = 2"
    )

    assert rows_of(found, "message_id", "payload_hash", "key_hash") == [("1", "h1", None)]

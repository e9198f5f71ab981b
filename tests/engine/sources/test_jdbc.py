"""PostgreSQL: one snapshot, values as they are, and errors that name everything but the password."""

from __future__ import annotations

import hashlib
import json
import random
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import NOW, evidence_of, rows_of, schema_of_its_own

from tieout.contracts import JdbcSource
from tieout.engine.evidence import Evidence
from tieout.engine.sampling import ROWS, sample
from tieout.engine.sources import jdbc
from tieout.engine.sources.source import Reach, Request
from tieout.errors import ConnectionNotFoundError, SourceError
from tieout.model import Ledger

_TABLE = {"kind": "jdbc", "connection": "warehouse", "table": "analytics.orders"}
Execute = Callable[[str], None]


@pytest.fixture
def execute(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Execute]:
    """Runs statements in a schema of its own; the connection `warehouse` leads to the same server."""
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", postgres_url)
    with schema_of_its_own(postgres_url, "analytics") as run:
        yield run


_TIMES = {
    "timestamptz": "'{}+00'",
    "timestamp": "'{}'",
    "bigint": "extract(epoch FROM timestamptz '{}+00') * 1000",
}


def _evidence(spark: SparkSession, folder: Path, **spec: Any) -> Evidence:
    return evidence_of(spark, folder, "delivered", **{"source": _TABLE, **spec})


@pytest.mark.parametrize(
    ("column", "year"), [("", 2026), (", '2020-01-01Z'::timestamptz AS \"TAKEN_AT\"", 2020)]
)
def test_positions_stood_when_the_snapshot_was_taken(
    spark: SparkSession, tmp_path: Path, execute: Execute, column: str, year: int
) -> None:
    """A table of positions says what the database had in its snapshot, unless a column says when."""
    execute("CREATE TABLE analytics.positions (topic text, partition int, committed_offset bigint)")
    execute("INSERT INTO analytics.positions VALUES ('orders', 0, 7)")
    query = f"SELECT *{column} FROM analytics.positions"  # noqa: S608 - a column of this test's
    source = {"kind": "jdbc", "connection": "warehouse", "query": query}

    found = evidence_of(spark, tmp_path, "committed", source=source)

    (row,) = found.rows.collect()
    assert (row["committed_offset"], row["committed_at"], row["taken_at"].year >= year) == (7, None, True)
    assert (row["taken_at"].year == 2020) is bool(column)


def test_rows_arrive_as_they_are(spark: SparkSession, tmp_path: Path, execute: Execute) -> None:
    """Line breaks, quotes, backslashes, nulls, bytes, microseconds and big numbers survive; an empty id is none."""
    execute(
        """
        CREATE TABLE analytics.orders (message_id text, "offset" bigint, processed_at timestamptz,
            payload_hash bytea, effect_key numeric, consumer_id uuid, transaction_id jsonb);
        INSERT INTO analytics.orders VALUES
            (E'a\\nb"c\\\\d,\\te', 4611686018427387903, '2026-11-20 11:00:00.123456+01', '\\xdeadbeef', 17,
             'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"k": [1, 2]}'),
            ('', NULL, NULL, NULL, 0.10, NULL, NULL)
        """
    )

    found = _evidence(spark, tmp_path)

    first, second = found.rows.orderBy("message_id", ascending=False).collect()
    assert first["message_id"] == 'a\nb"c\\d,\te'
    assert first["offset"] == 4611686018427387903
    assert first["payload_hash"] == "deadbeef"
    assert first["effect_key"] == "17"
    assert first["consumer_id"] == "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    assert first["transaction_id"] == '{"k": [1, 2]}'
    times = found.rows.where("processed_at IS NOT NULL").selectExpr("unix_micros(processed_at)").collect()
    assert times[0][0] == datetime(2026, 11, 20, 10, 0, 0, 123456, tzinfo=UTC).timestamp() * 1_000_000
    assert (second["message_id"], second["offset"], second["effect_key"]) == (None, None, "0.10")
    assert found.coverage.rows == 2
    assert found.coverage.undated == 1


def test_a_body_that_is_called_content_is_not_fetched(
    spark: SparkSession, tmp_path: Path, execute: Execute
) -> None:
    """Only whether it is the ledger's word is asked, unless the contract makes something else of it."""
    execute(
        """
        CREATE TABLE analytics.orders (message_id text, content text);
        INSERT INTO analytics.orders VALUES ('1', 'unknown'), ('2', 'a body'), ('3', NULL)
        """
    )

    plain = _evidence(spark, tmp_path)
    used = _evidence(spark, tmp_path, columns={"payload_hash": "md5(content)"})

    assert rows_of(plain, "message_id", "content") == [("1", "unknown"), ("2", None), ("3", None)]
    body = hashlib.md5(b"a body", usedforsecurity=False).hexdigest()
    assert rows_of(used, "message_id", "payload_hash")[1:] == [("2", body), ("3", None)]


def test_texts_arrive_whatever_they_are_made_of(
    spark: SparkSession, tmp_path: Path, execute: Execute
) -> None:
    """Marks, escapes and ends of lines are no others once they are in a text, and nothing is no row less."""
    chance = random.Random(20261125)  # noqa: S311 - test data, no secret
    marks = [*r"\\N.ntrbfv", "x41", *"\n\r\t\b\f\v\x01\x02\"', é\ufeff\u2028\x85"]
    texts = ["", " ", "\\N", "\\.", "\\\\N", *("".join(chance.choices(marks, k=n % 7)) for n in range(2000))]
    written = "'" + json.dumps(texts).replace("'", "''") + "'"
    execute("CREATE TABLE analytics.orders (consumer_id text, effect_key text)")
    execute("CREATE TABLE analytics.one (consumer_id text)")
    rows = f"SELECT t, nullif(t, '') FROM json_array_elements_text({written}) AS t"  # noqa: S608 - our own
    execute(f"INSERT INTO analytics.orders {rows}")
    execute("INSERT INTO analytics.one SELECT consumer_id FROM analytics.orders")

    found = _evidence(spark, tmp_path)
    single = _evidence(spark, tmp_path, source={**_TABLE, "table": "analytics.one"})

    assert rows_of(found, "consumer_id", "effect_key") == sorted(((t, t or None) for t in texts), key=repr)
    assert rows_of(single, "consumer_id") == sorted(((t,) for t in texts), key=repr)


def test_expressions_see_the_columns_types(spark: SparkSession, tmp_path: Path, execute: Execute) -> None:
    """Numbers can be reckoned with, times compared, and `where` chooses the rows."""
    execute(
        """
        CREATE TABLE analytics.orders (id bigint, ms bigint, loaded timestamp, ok boolean, tags text[]);
        INSERT INTO analytics.orders VALUES (1, 1763632800000, '2026-11-20 10:00', true, '{a,b}'),
            (2, 0, '2026-11-20 10:00', false, NULL)
        """
    )

    found = _evidence(
        spark,
        tmp_path,
        columns={
            "message_id": "concat('o-', id)",
            "processed_at": "timestamp_millis(ms + 5)",
            "record_timestamp": "loaded",
            "effect_key": "upper(tags)",
        },
        where="ok and loaded >= timestamp'2026-11-20 09:00:00'",
    )

    assert rows_of(found, "message_id", "effect_key") == [("o-1", "{A,B}")]
    assert found.rows.selectExpr("unix_millis(processed_at)").collect()[0][0] == 1763632800005


@pytest.mark.parametrize("kind", ["timestamptz", "timestamp", "bigint"])
def test_rows_beyond_reach_stay_on_the_server(
    spark: SparkSession, tmp_path: Path, execute: Execute, kind: str
) -> None:
    """The server is asked for what may be needed, by the column that is the time; other columns are no time to it."""
    execute(f"CREATE TABLE analytics.orders (message_id text, processed_at {kind})")
    old, first = (_TIMES[kind].format(time) for time in ("2026-11-20 07:59:59.999", "2026-11-20 08:00:00"))
    unset = _TIMES[kind].format("1970-12-31 23:59:59")
    for name, processed_at in (("old", old), ("first", first), ("undated", "NULL"), ("unset", unset)):
        execute(f"INSERT INTO analytics.orders VALUES ('{name}', {processed_at})")  # noqa: S608 - our own
    reach = Reach(datetime(2026, 11, 20, 8, tzinfo=UTC), "Processed_At")

    handed = [
        jdbc.read(
            JdbcSource.model_validate(_TABLE), Request(spark, Ledger.DELIVERED, tmp_path, NOW, reach=one)
        ).rows
        for one in (reach, replace(reach, column=None), replace(reach, column="message_id"))
    ]

    names = [{row["message_id"] for row in rows.collect()} for rows in handed if rows is not None]
    assert names == [{"first", "undated", "unset"}, *[{"old", "first", "undated", "unset"}] * 2]


def test_query_and_its_snapshot_time(spark: SparkSession, tmp_path: Path, execute: Execute) -> None:
    """A query is evidence too, complete up to the server's time of the snapshot, whatever this clock says."""
    before = datetime.now(UTC)
    source = {"kind": "jdbc", "connection": "warehouse", "query": "SELECT 'm' AS message_id -- one\n;"}

    found = _evidence(spark, tmp_path, source=source, coverage={"complete_until": "now()"})

    assert rows_of(found, "message_id") == [("m",)]
    until = found.coverage.complete_until
    assert until is not None
    assert before <= until <= datetime.now(UTC)


def test_columns_without_use_stay_on_the_server(
    spark: SparkSession, tmp_path: Path, execute: Execute
) -> None:
    """The server does not even work out what the contract uses nowhere; a table need have nothing of use."""
    query = "SELECT 'm' AS message_id, n, 1 / (n - 1) AS body FROM analytics.orders"
    source = {**_TABLE, "table": None, "query": query}
    execute("CREATE TABLE analytics.orders (n int); INSERT INTO analytics.orders VALUES (1)")

    found = _evidence(spark, tmp_path, source=source, columns={"effect_key": "N + 1"})

    assert rows_of(found, "message_id", "effect_key") == [("m", "2")]
    with pytest.raises(SourceError, match="division by zero"):
        _evidence(spark, tmp_path, source=source, where="body > 0")
    assert _evidence(spark, tmp_path).coverage.rows == 1


def test_columns_that_differ_in_capital_letters_are_named(
    spark: SparkSession, tmp_path: Path, execute: Execute
) -> None:
    """Which of both is meant, nobody knows, unless neither is of use."""
    execute('CREATE TABLE analytics.orders ("Message_ID" text, message_id text, "N" int, n int)')

    with pytest.raises(SourceError, match="capital letters, found Message_ID, message_id; use a query"):
        _evidence(spark, tmp_path)
    query = 'SELECT "N", n, message_id FROM analytics.orders'
    assert rows_of(_evidence(spark, tmp_path, source={**_TABLE, "table": None, "query": query})) == []


def test_digest_does_not_depend_on_the_order_of_rows(
    spark: SparkSession, tmp_path: Path, execute: Execute
) -> None:
    """The same rows in another order are the same evidence, one more equal row is not."""
    digests = []
    for values in ("('a'), ('b'), ('b')", "('b'), ('a'), ('b')", "('b'), ('a')"):
        execute("DROP TABLE IF EXISTS analytics.orders; CREATE TABLE analytics.orders (message_id text)")
        execute(f"INSERT INTO analytics.orders VALUES {values}")  # noqa: S608 - the test's own values
        digests.append(_evidence(spark, tmp_path).coverage.digests)

    assert digests[0] == digests[1] != digests[2]
    assert digests[0][0].startswith("rows-sha256:")
    assert digests[0][0].endswith("  warehouse:analytics.orders")


def test_what_spark_cannot_hold_is_counted(spark: SparkSession, tmp_path: Path, execute: Execute) -> None:
    """PostgreSQL's infinite time is no time that Spark has."""
    execute(
        "CREATE TABLE analytics.orders (message_id text, processed_at timestamptz);"
        "INSERT INTO analytics.orders VALUES ('a', 'infinity'), ('b', now())"
    )

    found = _evidence(spark, tmp_path)

    assert rows_of(found, "message_id") == [("b",)]
    assert found.coverage.unparsed == 1
    assert found.coverage.notes[0].startswith("processed_at: expected an ISO 8601 time")


def test_what_spark_cannot_hold_costs_nothing_unless_it_is_used(
    spark: SparkSession, tmp_path: Path, execute: Execute
) -> None:
    """The name of an unused column may stand in that of a used one."""
    execute(
        "CREATE TABLE analytics.orders (order_id text, d date, loaded timestamptz, loaded_at timestamptz);"
        "INSERT INTO analytics.orders VALUES ('a', 'infinity', 'infinity', now())"
    )
    columns = {"message_id": "upper(order_id)", "processed_at": "date_trunc('second', loaded_at)"}

    found = _evidence(spark, tmp_path, columns=columns)
    used = _evidence(spark, tmp_path, columns={**columns, "processed_at": "coalesce(loaded, loaded_at)"})

    assert rows_of(found, "message_id") == [("A",)]
    assert found.coverage.unparsed == 0
    assert used.coverage.notes[0] == "loaded: cannot be held by Spark"


def test_empty_table_is_present(spark: SparkSession, tmp_path: Path, execute: Execute) -> None:
    """No rows are no absence: the table is there, and was read."""
    execute("CREATE TABLE analytics.orders (message_id text)")

    found = _evidence(spark, tmp_path, coverage={"complete_until": "now()"})

    assert found.coverage.is_present
    assert found.coverage.rows == 0
    assert found.coverage.complete_until is not None


def test_missing_table_is_named(spark: SparkSession, tmp_path: Path, execute: Execute) -> None:
    """A wrong table is the user's mistake, said in one line."""
    with pytest.raises(SourceError, match=r'^ledgers\.delivered\.source\.table: relation "analytics.orders"'):
        _evidence(spark, tmp_path)


def test_missing_column_names_those_there_are(spark: SparkSession, tmp_path: Path, execute: Execute) -> None:
    """An expression over a column that is not there says where it stands and what there is."""
    execute("CREATE TABLE analytics.orders (id text, loaded_at timestamptz)")

    with pytest.raises(SourceError, match=r"columns\.message_id: no column `ident`.*: id, loaded_at$"):
        _evidence(spark, tmp_path, columns={"message_id": "ident"})


def test_query_cannot_write(spark: SparkSession, tmp_path: Path, execute: Execute) -> None:
    """The snapshot is read only."""
    execute(
        "CREATE TABLE analytics.orders (message_id text);"
        "CREATE FUNCTION analytics.spoil() RETURNS text LANGUAGE sql AS "
        "$$ INSERT INTO analytics.orders VALUES ('x') RETURNING message_id $$"
    )
    source = {"kind": "jdbc", "connection": "warehouse", "query": "SELECT analytics.spoil() AS message_id"}

    with pytest.raises(SourceError, match="read-only transaction"):
        _evidence(spark, tmp_path, source=source)


def test_refused_connections_do_not_tell_the_password(
    spark: SparkSession, tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong password and a closed port are explained; neither message nor traceback has the secret."""
    port = urlsplit(postgres_url).port
    for wrong_port, reason in ((port, "password authentication failed"), (1, "Connection refused")):
        uri = f"postgresql://postgres:s3cret@127.0.0.1:{wrong_port}/postgres"
        monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", uri)

        with pytest.raises(SourceError, match=reason) as caught:
            _evidence(spark, tmp_path)

        assert str(caught.value).startswith("ledgers.delivered.source.connection: warehouse: ")
        assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_password_is_in_no_plan(
    spark: SparkSession, tmp_path: Path, execute: Execute, postgres_url: str
) -> None:
    """What Spark shows of the query says nothing of the connection."""
    execute("CREATE TABLE analytics.orders (message_id text)")
    password = urlsplit(postgres_url).password

    plan = _evidence(spark, tmp_path).rows._jdf.queryExecution().toString()

    assert password
    assert password not in plan


def test_connection_of_another_kind_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only PostgreSQL is read; a connection that is not defined is its own error."""
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", json.dumps({"conn_type": "mysql", "host": "h"}))
    with pytest.raises(SourceError, match="expected a PostgreSQL connection, found warehouse of type mysql"):
        _evidence(spark, tmp_path)

    monkeypatch.delenv("AIRFLOW_CONN_WAREHOUSE")
    with pytest.raises(ConnectionNotFoundError, match="AIRFLOW_CONN_WAREHOUSE"):
        _evidence(spark, tmp_path)


def test_a_look_at_a_table_is_bounded_and_keeps_the_password(
    execute: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first rows with their types, for `tieout init`; what is wrong is told as it is for a whole read."""
    execute(
        "CREATE TABLE analytics.orders (id text, loaded_at timestamptz, amount numeric);"
        "INSERT INTO analytics.orders SELECT 'o-' || n, '2026-11-20 10:00Z', n FROM generate_series(1, 1500) AS n"
    )

    found = sample("jdbc:warehouse:analytics.orders", "--delivered", Ledger.DELIVERED)

    assert (found.form, found.path, found.rows) == ("jdbc", "warehouse:analytics.orders", ROWS)
    assert [(column.name, column.kind) for column in found.columns[:2]] == [
        ("id", "text"),
        ("loaded_at", "time"),
    ]
    for name in ("nothing", "100%", "%s of '%(a)s"):
        with pytest.raises(SourceError, match=r"^--delivered\.table: relation .* does not exist"):
            sample(f"jdbc:warehouse:analytics.{name}", "--delivered", Ledger.DELIVERED)
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", "postgresql://u:s3cret@127.0.0.1:1/x")
    with pytest.raises(SourceError) as refused:
        sample("jdbc:warehouse:analytics.orders", "--delivered", Ledger.DELIVERED)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT '1' AS message_id) AS s LIMIT 0; COMMIT; DELETE FROM analytics.orders; "
            "SELECT * FROM (SELECT '1' AS message_id",
            "syntax error at or near",
        ),
        (
            "SELECT 1; DELETE FROM analytics.orders",
            "expected one query that returns rows: cannot open multi-query",
        ),
        ("COMMIT", "expected one query that returns rows: cannot open"),
        ("DELETE FROM analytics.orders RETURNING *", "syntax error at or near"),
        (
            "WITH gone AS (DELETE FROM analytics.orders RETURNING *) SELECT * FROM gone",
            "WITH clause containing a data-modifying statement must be at the top level",
        ),
        ("SELECT * INTO analytics.copy FROM analytics.orders", "expected one query that returns rows: "),
        ("SELECT * FROM analytics.orders FOR UPDATE", "cannot execute SELECT FOR UPDATE in a read-only"),
        (
            "SELECT set_config('transaction_read_only', 'off', false) AS message_id",
            "transaction read-write mode",
        ),
        ("SELECT '1' AS message_id /*", "unterminated /* comment"),
        (
            "SELECT '1' AS message_id --\n) AS s; COMMIT; DELETE FROM analytics.orders --",
            "syntax error at or near",
        ),
        (
            "SELECT '\\') AS s; COMMIT; DELETE FROM analytics.orders; --' AS message_id",
            "syntax error at or near",
        ),
        ("EXPLAIN ANALYZE DELETE FROM analytics.orders", "syntax error at or near"),
        ("COPY analytics.orders TO PROGRAM 'true'", "expected one query that returns rows: "),
        ("SELECT query_to_xml('DELETE FROM analytics.orders', true, true, '')", "DELETE is not allowed"),
        ("SELECT ts_stat('DELETE FROM analytics.orders')", "cannot open DELETE query as cursor"),
        ("SELECT lo_import('/etc/hostname')", "cannot execute lo_import() in a read-only transaction"),
        ("", "expected one query that returns rows: "),
    ],
)
def test_a_query_does_not_leave_its_brackets(
    spark: SparkSession, tmp_path: Path, execute: Execute, query: str, message: str
) -> None:
    """Whatever it says is one query in a transaction that only reads, or it is refused; the table stays as it was."""
    execute("CREATE TABLE analytics.orders (message_id text); INSERT INTO analytics.orders VALUES ('a')")
    source = {"kind": "jdbc", "connection": "warehouse", "query": query or "  ;  "}

    with pytest.raises(SourceError) as refused:
        _evidence(spark, tmp_path, source=source)

    assert message in str(refused.value)
    assert rows_of(_evidence(spark, tmp_path), "message_id") == [("a",)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT $a$) AS s; COMMIT; DELETE FROM analytics.orders; --$a$ AS message_id",
        r"SELECT E'\') AS s; COMMIT; DELETE FROM analytics.orders; --' AS message_id",
        r"SELECT U&'\0027) AS s; COMMIT; DELETE FROM analytics.orders; --' AS message_id",
        "SELECT '1' /* /* */ ) AS s; COMMIT; DELETE FROM analytics.orders; -- */ AS message_id",
        "SELECT set_config('default_transaction_read_only', 'off', false) AS message_id",
        "SELECT set_config('standard_conforming_strings', 'off', false) AS message_id",
    ],
)
def test_a_text_within_a_query_stays_a_text(
    spark: SparkSession, tmp_path: Path, execute: Execute, query: str
) -> None:
    """However it is quoted: the server that checks the query reads it with the same grammar as the one that runs it."""
    execute("CREATE TABLE analytics.orders (message_id text); INSERT INTO analytics.orders VALUES ('a')")
    source = {"kind": "jdbc", "connection": "warehouse", "query": query}

    assert len(rows_of(_evidence(spark, tmp_path, source=source), "message_id")) == 1
    assert rows_of(_evidence(spark, tmp_path), "message_id") == [("a",)]


def test_a_query_may_end_as_people_end_it(spark: SparkSession, tmp_path: Path, execute: Execute) -> None:
    """With a semicolon or a comment; with a common table expression, or with percent signs, as well."""
    execute(
        "CREATE TABLE analytics.orders (message_id text); INSERT INTO analytics.orders VALUES ('a%'), ('b')"
    )
    query = (
        "WITH all_of_them AS (TABLE analytics.orders) SELECT * FROM all_of_them WHERE message_id LIKE 'a%';"
    )

    for text in (query, f"{query.removesuffix(';')} -- those with an a"):
        found = _evidence(spark, tmp_path, source={"kind": "jdbc", "connection": "warehouse", "query": text})
        assert rows_of(found, "message_id") == [("a%",)]


def test_what_the_first_value_begins_with_is_no_mark_of_its_file(
    spark: SparkSession, tmp_path: Path, execute: Execute
) -> None:
    """A byte order mark at the beginning of the copied rows went away: two ids were one, and a loss of one unseen."""
    for rows in (["\ufeffa", "a"], ["\ufeff"], ["\ufeff\ufeffa", "\ufeffa"], ["", "\ufeff"]):
        execute("DROP TABLE IF EXISTS analytics.orders; CREATE TABLE analytics.orders (consumer_id text)")
        for row in rows:
            execute(f"INSERT INTO analytics.orders VALUES ('{row}')")  # noqa: S608 - a value of this test's

        found = _evidence(spark, tmp_path)

        assert sorted(value for (value,) in rows_of(found, "consumer_id")) == sorted(rows)


def test_a_row_that_is_too_large_is_a_fault(
    spark: SparkSession, tmp_path: Path, execute: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred megabytes of text in one value ended Java, and with it the session and every other ledger."""
    monkeypatch.setenv("TIEOUT_UNPACKED_RECORD_MB", "1")
    execute("CREATE TABLE analytics.orders (message_id text, value text)")
    execute("INSERT INTO analytics.orders VALUES ('a', repeat('x', 1100000)), ('b', repeat('x', 900000))")

    found = _evidence(spark, tmp_path, columns={"payload_hash": "sha2(value, 256)"})

    assert rows_of(found, "message_id") == [("b",)]
    assert found.coverage.unparsed == 1
    assert not found.coverage.is_within_tolerance
    expected_note = (
        "1 rows: expected at most 1 MB in a row, found more; TIEOUT_UNPACKED_RECORD_MB allows more"
    )
    assert expected_note in found.coverage.notes

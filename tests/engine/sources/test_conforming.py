"""Conforming: the contract's expressions, the canonical types, and rows that fit neither."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.engine.sources.builders import NOW, WINDOW, contract_of, evidence_of, jsonl, rows_of

from tieout.contracts.columns import CANONICAL_COLUMNS
from tieout.engine.evidence import Evidence
from tieout.engine.ledger import SCHEMAS
from tieout.engine.reading import read_evidence
from tieout.engine.session import suited_to
from tieout.engine.sources.conforming import conformed
from tieout.engine.sources.named_columns import text_columns
from tieout.engine.sources.source import BLOCK, FAULT, FILE, ROW, TEXT
from tieout.errors import SourceError
from tieout.model import Ledger, Window


def _evidence(
    spark: SparkSession, folder: Path, rows: Sequence[Any], ledger: str = "produced", **spec: Any
) -> Evidence:
    (folder / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return evidence_of(spark, folder, ledger, source=jsonl("p.jsonl"), **spec)


def test_times_as_text_and_as_milliseconds(spark: SparkSession, tmp_path: Path) -> None:
    """ISO 8601 with or without a zone, and milliseconds as number or text, are one time; seconds keep six places."""
    texts = [
        "2026-11-20T10:00:00.123456Z",
        "2026-11-20 11:00:00.123456+01:00",
        "2026-11-20T12:00:00,123456+0200",
        "2026-11-20 10:00:00.123456+00",
        "2026-11-20 10:00:00,123456",
    ]
    rows = [{"attempted_at": text} for text in texts]
    moment = int(datetime(2026, 11, 20, 10, tzinfo=UTC).timestamp() * 1000)

    found = _evidence(spark, tmp_path, [*rows, {"attempted_at": moment}, {"attempted_at": str(moment)}])

    assert found.coverage.unparsed == 0
    micros = [row[0] for row in found.rows.selectExpr("unix_micros(attempted_at)").collect()]
    assert sorted(micros) == [moment * 1000] * 2 + [moment * 1000 + 123456] * 5


def test_times_as_programs_print_them(spark: SparkSession, tmp_path: Path) -> None:
    """Java leaves out seconds that are 0 and names the zone behind the offset; RFC 3339 allows small letters."""
    right = [
        "2026-11-20T10:00Z",
        "2026-11-20T10:00",
        "2026-11-20T11:00+01:00[Europe/Berlin]",
        "2026-11-20T10:00:00Z[UTC]",
        "2026-11-20T11:00:00.000+01:00[Europe/Berlin]",
        "2026-11-20t10:00:00z",
    ]
    wrong = ["2026-11-20T10:00[Europe/Berlin]", "2026-11-20T10:00Z[", "2026-11-20T10:60Z", "2026-11-20T10Z"]
    rows = [{"attempted_at": text} for text in (*right, *wrong)]

    found = _evidence(spark, tmp_path, rows)

    moment = int(datetime(2026, 11, 20, 10, tzinfo=UTC).timestamp() * 1000)
    millis = [row[0] for row in found.rows.selectExpr("unix_millis(attempted_at)").collect()]
    assert (millis, found.coverage.unparsed) == ([moment] * len(right), len(wrong))


def test_a_column_s_name_that_is_no_word_is_asked_for_in_backticks(
    spark: SparkSession, tmp_path: Path
) -> None:
    """`Order ID` would be the column `Order`, renamed, and `order-id` a difference of two columns."""
    messages = {
        "order-id": r"found order-id; .* in backticks: `order-id`$",
        "Order ID": r"found Order ID; .* in backticks: `Order ID`$",
        "@id": r"found @id; .* in backticks: `@id`$",
        "order.id": r"in backticks: `order.id`$",
    }
    rows = [{**{name: name for name in messages}, "Order": "x", "order-": 1, "id": 2}]

    for name, message in messages.items():
        with pytest.raises(SourceError, match=message):
            _evidence(spark, tmp_path, rows, columns={"message_id": name})

    columns = ("message_id", "producer_id", "topic", "payload_hash")
    quoted = [f"`{name}`" for name in messages]
    found = _evidence(spark, tmp_path, rows, columns=dict(zip(columns, quoted, strict=True)))
    assert rows_of(found, *columns) == [tuple(messages)]


def test_a_pattern_that_spark_does_not_take_is_reported_as_such(spark: SparkSession, tmp_path: Path) -> None:
    """Other programs write `YYYY-MM-DD`; the try_ form of the function fails on it as well."""
    with pytest.raises(
        SourceError, match=r"ledgers\.produced: .* pattern of date and time .*: 'YYYY-MM-DD'; "
    ):
        _evidence(
            spark,
            tmp_path,
            [{"t": "2026-11-20"}],
            columns={"attempted_at": "to_timestamp(t, 'YYYY-MM-DD')"},
        )


def test_a_word_for_all_rows_is_asked_for_in_quotes(spark: SparkSession, tmp_path: Path) -> None:
    """In YAML the quotes around a word are gone before SQL sees them."""
    with pytest.raises(SourceError, match=r"no column `acked`; .* in quotes of its own: \"'acked'\"$"):
        _evidence(spark, tmp_path, [{"message_id": "1"}], columns={"outcome": "acked"})


def test_whole_numbers_in_every_spelling(spark: SparkSession, tmp_path: Path) -> None:
    """With or without a sign, a point and blanks around; what has a fraction or does not fit is a wrong value."""
    right = ["17", "+17", " 17 ", "17.", "17.0", "17.00\t", "017", "1.7E1", "1.7e1", "17e+0"]
    wrong = [
        "17.5",
        "1.75E1",
        "1.7E16",
        "9.007199254740993E15",
        "17 0",
        "x17",
        "",
        "9223372036854775808",
        "\u0661",
    ]
    rows = [{"message_id": "m", "sequence": value} for value in (*right, *wrong)]

    found = _evidence(spark, tmp_path, rows)

    assert rows_of(found, "sequence") == [(17,)] * len(right)
    assert found.coverage.unparsed == len(wrong)


def test_number_that_a_spreadsheet_rounded_is_none(spark: SparkSession, tmp_path: Path) -> None:
    """`1.79517E+12` may be any of ten million numbers; with all digits, or as Java writes it, it is one."""
    right = ["1.795168801E+9", "1.2345678e+7", "1.2E7"]
    wrong = ["1.79517E+12", "1.8E+12", "18E+5", "1.795168801000E+13"]
    rows = [[f"m{n}", value, value] for n, value in enumerate([*right, *wrong])]
    lines = [["message_id", "attempted_at", "offset"], *rows]
    (tmp_path / "p.csv").write_text("".join(",".join(line) + "\n" for line in lines))

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("p.csv", format="csv"))

    assert rows_of(found, "offset") == [(12_000_000,), (12_345_678,), (1_795_168_801,)]
    assert found.coverage.unparsed == len(wrong)
    named = [note for note in found.coverage.notes if note.startswith("p.csv:")]
    assert [note.partition(": ")[0] for note in named] == ["p.csv:5", "p.csv:6", "p.csv:7", "p.csv:8"]
    assert all("expected a number with all its digits" in note for note in named)
    assert named[0].endswith(", found 1.79517E+12")


@pytest.mark.parametrize("ledger", [*Ledger])
def test_rows_of_text_are_conformed_by_methods_that_java_compiles(
    spark: SparkSession, tmp_path: Path, ledger: Ledger
) -> None:
    """Java interprets a method of more than 8,000 bytes for ever: every column is text here, and converted."""
    (tmp_path / "rows.txt").write_text("1\n")
    own = [F.concat("value", F.lit(name)).alias(name) for name in SCHEMAS[ledger].names]
    text = [F.col("value").alias(name) for name in (FILE, TEXT, FAULT)]
    source = spark.read.text(str(tmp_path / "rows.txt")).select(
        *own, *text, F.lit(0).alias(BLOCK), F.lit(0).alias(ROW)
    )
    spec = contract_of(tmp_path, {ledger.value: {"source": jsonl("rows.txt")}}).ledgers[ledger]

    rows = conformed(source, ledger, spec).rows

    jvm: Any = spark.sparkContext._jvm
    debug = getattr(getattr(jvm.org.apache.spark.sql.execution.debug, "package$"), "MODULE$")
    stages = debug.codegenStringSeq(rows._jdf.queryExecution().executedPlan())
    sizes = [stages.apply(number)._3().maxMethodCodeSize() for number in range(stages.size())]
    assert sizes
    assert max(sizes) <= 8000


def test_what_is_no_time_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    """Words, impossible dates, fractions and numbers beyond all time are wrong values, never null."""
    wrong = ["soon", "2026-02-30T10:00:00Z", "10:00", 1.5, 10**18, True]

    found = _evidence(spark, tmp_path, [{"message_id": "m", "attempted_at": value} for value in wrong])

    assert found.coverage.rows == 0
    assert found.coverage.unparsed == len(wrong)


def test_expression_that_fails_on_a_row_counts_the_row(spark: SparkSession, tmp_path: Path) -> None:
    """A conversion inside an expression cannot kill the job, nor silently make null; a missing input may be null."""
    rows = [{"id": "1", "t": "2026-11-20T10:00:00Z", "n": "5"}, {"id": "2", "t": "x", "n": "5"}, {"id": "3"}]

    found = _evidence(
        spark,
        tmp_path,
        rows,
        columns={"message_id": "id", "attempted_at": "to_timestamp(t)", "sequence": "cast(n as bigint) + 1"},
    )

    assert rows_of(found, "message_id", "sequence") == [("1", 6), ("3", None)]
    assert found.coverage.unparsed == 1
    assert found.coverage.notes[0] == "p.jsonl:2: attempted_at: a value does not convert"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_date_is_a_time_only_in_windows_of_a_day(spark: SparkSession, tmp_path: Path, form: str) -> None:
    """In an hour's window a date would be a midnight that lies in another one, and every window of work be empty."""
    rows = spark.createDataFrame([("m", "2026-11-20"), ("n", None)], "message_id STRING, attempted_at STRING")
    if form == "parquet":
        rows = rows.withColumn("attempted_at", F.col("attempted_at").cast("date"))
    getattr(rows.coalesce(1).write.option("header", True), form)(str(tmp_path / "p"))
    ledgers = {"produced": {"source": jsonl("p", format=form)}}
    midnight = datetime(2026, 11, 20, tzinfo=UTC)
    day = Window(midnight, midnight + timedelta(days=1))

    hour, whole = (
        read_evidence(spark, contract_of(tmp_path, ledgers), window, NOW)[Ledger.PRODUCED]
        for window in (WINDOW, day)
    )

    assert (hour.coverage.rows, hour.coverage.unparsed) == (1, 1)
    note = "attempted_at: expected a time of day beside the date, as the window is shorter than a day, found 2026-11-20"
    assert hour.coverage.notes[0].endswith(note)
    assert whole.rows.selectExpr("max(unix_seconds(attempted_at))").collect()[0][0] == midnight.timestamp()


def test_unit_of_a_text_asks_for_a_cast_in_words_of_the_contract(spark: SparkSession, tmp_path: Path) -> None:
    """Spark makes no time of CSV's texts: the error quotes the contract and says what to write, as faults do."""
    (tmp_path / "p.csv").write_text("message_id,s,u\nm,1795168801,1795168801000000\nn,,\n")
    source = jsonl("p.csv", format="csv")

    for time in ("timestamp_seconds(s)", "timestamp_micros(u)"):
        with pytest.raises(SourceError) as raised:
            evidence_of(spark, tmp_path, "produced", source=source, columns={"attempted_at": time})
        assert f'"{time}"' in str(raised.value)
        assert "cast the text first: cast(COLUMN as bigint)" in str(raised.value)
        assert "lambda" not in str(raised.value)

    refused = evidence_of(
        spark, tmp_path, "produced", source=source, columns={"attempted_at": "concat(s, 'x')"}
    )
    for function in ("timestamp_seconds", "timestamp_micros"):
        assert f"{function}(cast(COLUMN as bigint))" in refused.coverage.notes[0]
    columns = {
        "attempted_at": "timestamp_seconds(cast(s as bigint))",
        "completed_at": "timestamp_micros(cast(u as bigint))",
    }
    found = evidence_of(spark, tmp_path, "produced", source=source, columns=columns)
    times = [f"max(unix_seconds({column}))" for column in columns]
    assert [tuple(row) for row in found.rows.selectExpr(*times).collect()] == [(1795168801, 1795168801)]


def test_a_comma_before_the_fraction_in_an_expression(spark: SparkSession, tmp_path: Path) -> None:
    """Log files of Java and Python write it; what is no time stays a value that does not convert."""
    times = ["2026-11-20 10:00:00,250", "2026-11-20T10:00:00.250Z", "soon"]

    found = _evidence(
        spark,
        tmp_path,
        [{"t": time} for time in times],
        columns={"attempted_at": "to_timestamp(concat(t, ''))"},
    )

    assert [row[0].microsecond for row in rows_of(found, "attempted_at")] == [250_000] * 2
    assert found.coverage.notes[0] == "p.jsonl:3: attempted_at: a value does not convert"


def test_expression_may_say_null(spark: SparkSession, tmp_path: Path) -> None:
    """Where null is meant, the function says so, and the row is a good one."""
    rows = [{"id": "1", "code": 200}, {"id": "2", "code": 500}, {"id": "", "code": 1}]

    found = _evidence(
        spark,
        tmp_path,
        rows,
        columns={"message_id": "nullif(id, '')", "outcome": "case when code = 200 then 'acked' end"},
    )

    assert rows_of(found, "message_id", "outcome") == [("1", "acked"), ("2", None), (None, None)]
    assert found.coverage.unparsed == 0


def test_an_empty_id_is_none(spark: SparkSession, tmp_path: Path) -> None:
    """All rows without one would be one message, also where an expression finds none. A word for null is an id."""
    rows = [{"id": id_} for id_ in ("order-1", "", "order-", "None")]

    own = _evidence(spark, tmp_path, rows, columns={"message_id": "id"})
    found = _evidence(
        spark, tmp_path, rows, columns={"message_id": "regexp_extract(id, '^order-([0-9]+)$', 1)"}
    )

    assert rows_of(own, "message_id") == [("None",), ("order-",), ("order-1",), (None,)]
    assert own.may_lack_id
    assert any(
        note.startswith(r"1 rows with one of \N, NULL, null, None, nan, NaN") for note in own.coverage.notes
    )
    assert rows_of(found, "message_id") == [("1",), (None,), (None,), (None,)]
    assert (found.coverage.rows, found.coverage.unparsed) == (4, 0)
    assert any(note.startswith("3 rows without message_id: ") for note in found.coverage.notes)


def test_where_chooses_before_values_are_held_against_their_types(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A row of another kind is not the ledger's, whatever is in it; a malformed line could have been."""
    (tmp_path / "p.jsonl").write_text(
        '{"event":"send","message_id":"1","offset":1}\n{"event":"open","message_id":"2","offset":"x"}\nbad\n'
    )

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("p.jsonl"), where="event = 'send'")

    assert rows_of(found, "message_id") == [("1",)]
    assert found.coverage.unparsed == 1


def test_a_row_without_what_where_excludes_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    """Whoever leaves out heartbeats wants the rows without a kind; whoever asks for orders does not."""
    rows = [
        {"id": "1", "kind": "order", "log": '{"event":"send"}'},
        {"id": "2", "log": '{"event":"se'},
        {"id": "3", "kind": "heartbeat", "log": "{}"},
    ]
    faulty = {
        "kind <> 'heartbeat'": ["2"],
        "kind not in ('heartbeat', 'ping')": ["2"],
        "not (kind = 'heartbeat')": ["2"],
        "kind IS DISTINCT FROM 'heartbeat'": [],
        "coalesce(kind <> 'heartbeat', false)": [],
        "kind = 'order'": [],
        "kind is not null and log is not null": [],
    }
    spec: dict[str, Any] = {"columns": {"message_id": "id"}, "coverage": "declared"}

    found = _evidence(spark, tmp_path, rows, where="kind <> 'heartbeat'", **spec).coverage
    plain = _evidence(spark, tmp_path, rows, where="kind = 'order'", **spec).coverage

    assert (found.unparsed, found.is_sound) == (1, False)
    (note,) = [note for note in found.notes if "p.jsonl:2: where: expected true or false, found null" in note]
    assert "coalesce(…, false)" in note
    assert (plain.unparsed, plain.is_sound) == (0, True)
    assert not any("where: expected" in note for note in plain.notes)
    assert _rows_that_where_faults(spark, tmp_path, rows, list(faulty)) == faulty


def _rows_that_where_faults(
    spark: SparkSession, folder: Path, rows: Sequence[dict[str, str]], conditions: Sequence[str]
) -> dict[str, list[str]]:
    """The ids of the rows that each condition makes a fault of, all of them worked out in one job."""
    values = [(row["id"], row.get("kind"), row["log"], None, None, 0, 0, None) for row in rows]
    hidden = f"{FILE} string, {TEXT} string, {BLOCK} bigint, {ROW} bigint, {FAULT} string"
    source = spark.createDataFrame(values, f"id string, kind string, log string, {hidden}")
    found = []
    for where in conditions:
        spec = {"source": jsonl("p.jsonl"), "columns": {"message_id": "id"}, "where": where}
        ledger = contract_of(folder, {"produced": spec}).ledgers[Ledger.PRODUCED]
        frame = conformed(source, Ledger.PRODUCED, ledger).rows.where(f"{FAULT} IS NOT NULL")
        found.append(frame.select(F.lit(where).alias("condition"), "message_id"))
    with suited_to(spark, is_small=True):
        faulty = reduce(DataFrame.unionAll, found).collect()
    return {where: [row[1] for row in faulty if row[0] == where] for where in conditions}


@pytest.mark.parametrize(
    ("where", "notes"),
    [
        ("kind = 'order'", ["where leaves out 1 rows"]),
        ("kind = 'offer'", ["where leaves out 3 rows, and none is left: does it fit the values?"]),
        ("kind is not null", []),
        (None, []),
    ],
)
def test_rows_that_where_leaves_out_are_counted(
    spark: SparkSession, tmp_path: Path, where: str | None, notes: list[str]
) -> None:
    """A condition that fits no row leaves nothing to judge, which must be seen."""
    rows = [
        {"message_id": str(number), "kind": kind} for number, kind in enumerate(("order", "order", "ping"))
    ]

    found = _evidence(spark, tmp_path, rows, where=where).coverage

    assert [note for note in found.notes if note.startswith("where")] == notes


def test_a_word_that_where_has_in_another_spelling_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    """A send called SEND was left out beside those called send, and with it that it was lost."""
    rows = [
        {"id": str(number), "kind": kind} for number, kind in enumerate(("send", "SEND", "send ", "ping"))
    ]
    faulty = {
        "kind = 'send'": ["1", "2"],
        "kind <> 'send'": ["1", "2"],
        "kind in ('send', 'open')": ["1", "2"],
        "kind in ('send', 'SEND', 'send ')": [],
        "lower(trim(kind)) = 'send'": [],
        "kind = 'send' or kind like 'send%'": [],
    }
    spec = {"source": jsonl("p.jsonl"), "columns": {"message_id": "id"}}

    found = _evidence(spark, tmp_path, rows, where="kind = 'send'", columns=spec["columns"]).coverage

    assert (found.rows, found.unparsed) == (1, 2)
    assert any(
        "p.jsonl:2: where: expected 'send' as the contract writes it, found 'SEND'" in note
        for note in found.notes
    )
    assert any(note == "where leaves out 1 rows" for note in found.notes)
    assert (
        _rows_that_where_faults(spark, tmp_path, [row | {"log": ""} for row in rows], list(faulty)) == faulty
    )


@pytest.mark.parametrize(
    ("outcome", "read", "unparsed"),
    [
        ("if(status = 'ok', 'ok', 'failed')", [("0", "ok"), ("3", "failed")], 2),
        ("case status when 'ok' then 'ok' else 'failed' end", [("0", "ok"), ("3", "failed")], 2),
        ("case when 'ok' = status then 'ok' else 'failed' end", [("0", "ok"), ("3", "failed")], 2),
        (
            "if(lower(trim(status)) = 'ok', 'ok', 'failed')",
            [("0", "ok"), ("1", "ok"), ("2", "ok"), ("3", "failed")],
            0,
        ),
        ("if(is_ok = 'True', 'ok', 'failed')", [(str(number), "ok") for number in range(4)], 0),
    ],
)
def test_a_word_that_an_expression_has_in_another_spelling_is_counted(
    spark: SparkSession, tmp_path: Path, outcome: str, read: list[tuple[str, str]], unparsed: int
) -> None:
    """An OK that counts as failed was told as a loss."""
    rows = [
        {"message_id": str(number), "status": status, "is_ok": True}
        for number, status in enumerate(("ok", "OK", "ok ", "error"))
    ]

    found = _evidence(spark, tmp_path, rows, "delivered", columns={"outcome": outcome})

    assert rows_of(found, "message_id", "outcome") == read
    assert found.coverage.unparsed == unparsed


def test_where_may_be_null_of_what_no_application_wrote(spark: SparkSession, tmp_path: Path) -> None:
    """A marker of the log has no value, and a row without an offset states bounds alone: no fault keeps them back."""
    place = {"topic": "orders", "partition": 0}
    rows = [
        place | {"offset": 0, "is_control": False, "value": "send"},
        place | {"offset": 1, "is_control": True},
        place | {"end_offset": 2},
        place | {"offset": 2, "is_control": False},
    ]

    found = _evidence(spark, tmp_path, rows, ledger="log", where="value <> 'ping'").coverage

    assert (found.rows, found.unparsed) == (1, 1)


def test_nested_fields_and_objects(spark: SparkSession, tmp_path: Path) -> None:
    """A path into an object may lead nowhere; an object is hashed as JSON with its own types."""
    rows = [{"h": {"id": "1"}, "body": {"n": 1, "s": "x"}}, {"h": {}, "body": {"n": 2, "s": "y"}}]

    found = _evidence(
        spark,
        tmp_path,
        rows,
        columns={"message_id": "h.id", "payload_hash": "to_json(body)", "topic": "upper(h.id)"},
    )

    assert rows_of(found, "message_id", "payload_hash") == [
        ("1", '{"n":1,"s":"x"}'),
        (None, '{"n":2,"s":"y"}'),
    ]
    assert found.coverage.unparsed == 0


def test_outcome_of_another_word_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    """An outcome is one of the ledger's words."""
    found = _evidence(spark, tmp_path, [{"message_id": "1", "outcome": "ok"}])

    assert found.coverage.notes[0] == "p.jsonl:1: outcome: expected one of acked, failed, unknown, found ok"
    assert _evidence(spark, tmp_path, [{"outcome": "ok", "message_id": "1"}], "delivered").coverage.rows == 1


def test_words_in_capitals_or_with_blanks_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    """A word is taken as it is written: whoever writes others says in `columns` what they mean."""
    words = {"outcome": "acked", "transaction_state": "committed"}
    rows = [
        {"message_id": f"{column} {n}", column: each}
        for column, word in words.items()
        for n, each in enumerate((word, word.upper(), f" {word}", f"{word} "))
    ]

    found = _evidence(spark, tmp_path, rows)
    lowered = _evidence(spark, tmp_path, rows, columns={column: f"lower(trim({column}))" for column in words})

    assert rows_of(found, "message_id") == [("outcome 0",), ("transaction_state 0",)]
    assert found.coverage.unparsed == 6
    assert rows_of(lowered, *words) == [("acked", None)] * 4 + [(None, "committed")] * 4


def test_a_row_of_the_log_is_a_record_or_states_bounds(spark: SparkSession, tmp_path: Path) -> None:
    """What names neither an offset nor a bound shows nothing of the log: it is counted, and the log does not cover."""
    place = {"topic": "orders", "partition": 0}
    rows = [place | {"offset": 0}, place | {"end_offset": 1}, place | {"message_id": "m", "offset": None}]

    found = _evidence(spark, tmp_path, rows, ledger="log")

    assert (found.coverage.rows, found.coverage.unparsed) == (2, 1)
    assert not found.coverage.is_sound
    assert any(
        "p.jsonl:3: offset: expected a record's offset, or one of log_start_offset" in note
        for note in found.coverage.notes
    )


def test_a_json_field_that_no_line_has_may_be_left_out(spark: SparkSession, tmp_path: Path) -> None:
    """Programs leave out a field without a value. Of an id, of an outcome or of a misspelt name it is an error."""
    rows = [{"id": "1", "sent_at": "2026-11-20T10:00:00Z"}]
    columns = {"message_id": "id", "attempted_at": "sent_at", "completed_at": "answer.at"}

    found = _evidence(spark, tmp_path, rows, columns=columns)

    assert rows_of(found, "message_id", "completed_at") == [("1", None)]
    assert "completed_at" not in found.present
    assert "completed_at: no line has the field answer.at, so it is null in every row" in found.coverage.notes
    for column, text in (
        ("completed_at", "sent_ta"),
        ("outcome", "status"),
        ("completed_at", "date(answered)"),
    ):
        with pytest.raises(SourceError, match="no column"):
            _evidence(spark, tmp_path, rows, columns={**columns, column: text})


def test_canonical_schema_whatever_the_source_has(spark: SparkSession, tmp_path: Path) -> None:
    """Other columns are left behind, missing ones are null and not present."""
    found = _evidence(spark, tmp_path, [{"message_id": "1", "colour": "red"}])

    assert found.rows.schema == SCHEMAS[Ledger.PRODUCED]
    assert found.present == {"message_id"}
    assert rows_of(found, "topic") == [(None,)]


def test_content_says_unknown_or_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """A source's own column of that name may be a body, of which nothing is said; a mapped one has no other word."""
    rows = [{"message_id": "1", "content": "unknown"}, {"message_id": "2", "content": "a body"}]

    own = _evidence(spark, tmp_path, rows)
    mapped = _evidence(spark, tmp_path, rows, columns={"content": "lower(content)"})

    assert rows_of(own, "message_id", "content") == [("1", "unknown"), ("2", None)]
    assert own.coverage.unparsed == 0
    assert rows_of(mapped, "content") == [("unknown",)]
    assert any("p.jsonl:2: content: expected one of unknown" in note for note in mapped.coverage.notes)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"columns": {"message_id": "idd"}},
            r"columns\.message_id: no column `idd`; the source's columns are: id, n$",
        ),
        ({"columns": {"message_id": "concat(id"}}, r"columns\.message_id: .*[Ss]yntax"),
        (
            {"columns": {"message_id": "id +* ("}},
            r"columns\.message_id: expected Spark SQL, found id \+\* \(: .*[Ss]yntax",
        ),
        (
            {"columns": {"sequence": "max(n)"}},
            r"columns\.sequence: expected an expression over one row, found an aggregate: max\(n\);",
        ),
        (
            {"columns": {"attempted_at": "timestamp_secunds(n)"}},
            r"columns\.attempted_at: no function `timestamp_secunds`;",
        ),
        ({"where": "kind = 'x'"}, r"where: no column `kind`"),
        ({"where": "n + 1"}, r"where: expected a condition, found an expression of type bigint"),
    ],
)
def test_wrong_expression_names_its_place(
    spark: SparkSession, tmp_path: Path, spec: dict[str, Any], message: str
) -> None:
    """What Spark cannot resolve is the contract's error, in one line, with what there is to choose from."""
    with pytest.raises(SourceError, match=rf"^ledgers\.produced\.{message}"):
        _evidence(spark, tmp_path, [{"id": "1", "n": 1}], **spec)


def test_session_keeps_its_ansi_mode(spark: SparkSession, tmp_path: Path) -> None:
    """Reading leaves Spark's own settings as they were."""
    before = spark.conf.get("spark.sql.ansi.enabled")

    _evidence(spark, tmp_path, [{"id": "1"}], columns={"message_id": "id"})

    assert spark.conf.get("spark.sql.ansi.enabled") == before


def test_text_columns_are_those_without_an_expression() -> None:
    """A column that an expression uses too keeps the type it has."""
    columns = {
        "message_id": "`my id`",
        "attempted_at": "timestamp_millis(ms)",
        "sequence": "n",
        "offset": "n + 1",
    }

    found = text_columns(Ledger.PRODUCED, columns)

    assert {"my id", "topic"} <= found
    assert found.isdisjoint({"ms", "n", "sequence"})


def test_contracts_know_the_same_columns(tmp_path: Path) -> None:
    """The contract's list of canonical columns and the engine's schemas are one."""
    assert contract_of(tmp_path, {}).ledgers
    assert {ledger: tuple(schema.names) for ledger, schema in SCHEMAS.items()} == CANONICAL_COLUMNS


@pytest.mark.parametrize(
    ("groups", "notes", "doubts"),
    [
        (["loader", None], [], []),
        (
            ["loader", "audit", "audit", "billing"],
            ["3 of 4 rows are set aside, of other groups than loader: audit (2), billing (1)"],
            [],
        ),
        (
            ["audit", "audit"],
            ["2 of 2 rows are set aside, of other groups than loader: audit (2)"],
            [],
        ),
        (
            ["Loader", "loader"],
            [
                "1 of 2 rows are set aside, of other groups than loader: Loader (1); "
                "'Loader' and 'loader' differ only in case or blanks"
            ],
            [],
        ),
        (
            ["Loader", "Loader", "loader "],
            [
                "3 of 3 rows are set aside, of other groups than loader: Loader (2), loader  (1); "
                "'Loader', 'loader ' and 'loader' differ only in case or blanks"
            ],
            [
                "no row is of the group, and 'Loader', 'loader ' and 'loader' differ only in case or blanks: "
                "write the name as the rows have it"
            ],
        ),
    ],
)
def test_rows_of_other_groups_are_counted_and_named(
    spark: SparkSession, tmp_path: Path, groups: list[str | None], notes: list[str], doubts: list[str]
) -> None:
    """A group in another spelling leaves the output without a row: the ledger does not cover, so no message is lost."""
    rows = [{"message_id": str(n), "consumer_group": group} for n, group in enumerate(groups)]

    found = _evidence(spark, tmp_path, rows, ledger="delivered").coverage

    assert [note for note in found.notes if "set aside" in note] == notes
    assert found.rows == len(rows)
    assert list(found.doubts) == doubts
    assert not (found.is_sound and doubts)


_BY_CASE = "case status when 'ok' then 'acked' when 'error' then 'failed' end"


@pytest.mark.parametrize(
    ("statuses", "outcome", "is_doubtful"),
    [
        (["done", "done"], _BY_CASE, True),
        (["done", "error"], _BY_CASE, False),
        (["OK"], "cast(null as string)", False),
        ([None], "status", False),
    ],
)
def test_an_outcome_that_fits_no_row_is_a_doubt(
    spark: SparkSession, tmp_path: Path, statuses: list[str | None], outcome: str, is_doubtful: bool
) -> None:
    """All sends would be of unknown outcome, and those that were lost would count as not sent."""
    rows = [{"message_id": str(n), "status": status} for n, status in enumerate(statuses)]

    found = _evidence(spark, tmp_path, rows, columns={"outcome": outcome}, coverage="declared").coverage

    assert [doubt.partition(":")[0] for doubt in found.doubts] == [
        "outcome is null in all rows"
    ] * is_doubtful
    assert found.is_sound is not is_doubtful


@pytest.mark.parametrize(
    "id_column", ["cast(cast(id as double) as bigint)", "string(double(id))", "id::double::bigint"]
)
def test_an_id_of_a_rounded_number_is_unreadable(spark: SparkSession, tmp_path: Path, id_column: str) -> None:
    """From 2^53 on two ids become one double, and with it one message of whole digits."""
    rows = [{"id": "9007199254740992"}, {"id": "9007199254740993"}, {"id": "12"}, {"id": None}]

    found = _evidence(spark, tmp_path, rows, columns={"message_id": id_column})

    assert found.coverage.unparsed == 2
    assert "another id" in found.coverage.notes[0]
    assert {row["message_id"] for row in found.rows.collect()} in ({"12", None}, {"12.0", None})


def test_an_id_that_lacks_digits_is_unreadable(spark: SparkSession, tmp_path: Path) -> None:
    """A spreadsheet shows six digits of a long number, Java seventeen: beside other ids it looked like a loss."""
    rounded = ["1.23457E+15", "1e+21", "1.2345678901234568E19"]
    others = ["1.5E+1", "1.2E1", "5e17", "1E400", "a.b+c", "v1.5E17"]
    rows = [{"message_id": id_} for id_ in (*rounded, *others)]

    found = _evidence(spark, tmp_path, rows)

    assert {row["message_id"] for row in found.rows.collect()} == {*others}
    assert found.coverage.unparsed == len(rounded)
    assert any("message_id: expected a number with all its digits" in note for note in found.coverage.notes)


def test_what_a_producer_stamps_is_compared_as_a_record_keeps_it(spark: SparkSession, tmp_path: Path) -> None:
    """In milliseconds: a log and an output show no more of a stamp that a producer knows to the microsecond."""
    rows = [
        {"message_id": "a", "record_timestamp": "2026-11-20T10:00:00.123999Z"},
        {"message_id": "b", "record_timestamp": 1795168800123},
    ]

    found = _evidence(
        spark, tmp_path, rows, columns={"attempted_at": "to_timestamp('2026-11-20T10:00:00.5005Z')"}
    )

    assert found.rows.selectExpr("unix_micros(record_timestamp)").distinct().collect() == [
        (1795168800123000,)
    ]
    assert found.rows.selectExpr("max(unix_micros(attempted_at))").collect() == [(1795168800500500,)]

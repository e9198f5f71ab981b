"""Numbers of JSON documents: an id is the text that the document has, wherever it stands and whatever uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.builders import evidence_of, jsonl, rows_of

from tieout.engine.sources.json_numbers import exact_fields, has_texts, rewritten

_WRITTEN = (
    "12", "12.0", "12.00", "1.2E1", "1.2e+1", "-12.5",
    "3402823669209384634633746074317682114550", "3402823669209384634633746074317682114551",
    "9007199254740993.5", "9007199254740993.6", "0.1000000000000000055", "1E400",
)  # fmt: skip
_PLACES = {
    "message_id": ("id", '"id": %s'),
    "producer_session": ("concat(a, '')", '"a": %s'),
    "topic": ("b.id", '"b": {"id": %s, "x": 1}'),
    "topic_id": ("upper(c.p.id)", '"c": {"p": {"id": %s}}'),
    "effect_key": ("ids[1]", '"ids": ["x", %s]'),
    "consumer_group": ("numbers[0]", '"numbers": [%s]'),
    "consumer_id": ("array_join(transform(items, i -> i.id), ',')", '"items": [{"id": %s}]'),
    "transaction_id": ("get_json_object(to_json(d), '$.id')", '"d": {"id": %s}'),
    "poll_id": ("get_json_object(body, '$.o.id')", '"body": "{\\"o\\": {\\"id\\": %s}}"'),
    "isolation": ("from_json(to_json(e), 'id string').id", '"e": {"id": "%s"}'),
}
"""Expressions, each with the field that it uses, for the columns of `read`."""


def _ids(
    spark: SparkSession, folder: Path, lines: list[str], ledger: str = "produced", **columns: str
) -> list[Any]:
    (folder / "a.jsonl").write_text("".join(f"{line}\n" for line in lines))
    found = evidence_of(spark, folder, ledger, source=jsonl("a.jsonl"), columns=columns)
    assert found.coverage.unparsed == 0, found.coverage.notes
    return rows_of(found, *columns)


@pytest.mark.parametrize("mixed", [False, True], ids=["numbers", "beside texts"])
def test_a_number_is_the_text_that_was_written(spark: SparkSession, tmp_path: Path, mixed: bool) -> None:
    """Ids that a double would merge stay as many as there are, beside texts in the same field as well."""
    lines = [
        "{" + ",".join(field % one for _, field in _PLACES.values()) + f',"written": "{one}"' + "}"
        for one in _WRITTEN
    ]
    if mixed:
        may_be_text = [
            field for place, field in _PLACES.values() if "body" not in place and "from_json" not in place
        ]
        lines.append("{" + ",".join(field % '"o-1"' for field in may_be_text) + ',"written": "o-1"}')
    places = {column: place for column, (place, _) in _PLACES.items()}

    found = _ids(spark, tmp_path, lines, "read", key_hash="written", **places)

    assert sorted(row[0] for row in found) == sorted([*_WRITTEN, *["o-1"] * mixed])
    for written, *ids in found:
        for (place, _), one in zip(_PLACES.values(), ids, strict=True):
            is_there = written != "o-1" or ("body" not in place and "from_json" not in place)
            expected = written.upper() if "upper" in place else written
            assert (place, one) == (place, expected if is_there else None)


def test_an_object_is_hashed_with_its_numbers_as_written(spark: SparkSession, tmp_path: Path) -> None:
    """Whether other rows have fractions does not change what a row's object is; a text stays in quotes."""
    whole = '{"body": {"n": 5, "s": "5"}}'
    beside = '{"body": {"n": 5.50, "s": "x", "l": [1.0, 2]}}'

    alone = _ids(spark, tmp_path, [whole], payload_hash="to_json(body)", key_hash="body")
    both = _ids(spark, tmp_path, [whole, beside], payload_hash="to_json(body)")
    nested = _ids(spark, tmp_path, [f'{{"o": {one}}}' for one in (whole, beside)], payload_hash="o.body")

    assert alone == [('{"n":5,"s":"5"}', '{"n":5,"s":"5"}')]
    assert both == nested == [('{"l":[1.0,2],"n":5.50,"s":"x"}',), ('{"n":5,"s":"5"}',)]


@pytest.mark.parametrize("other", ['"n/a"', "2.50"])
def test_what_other_lines_hold_does_not_change_what_is_printed(
    spark: SparkSession, tmp_path: Path, other: str
) -> None:
    """A number and a truth value stay without quotes beside a text in the same field, and a text keeps its own."""
    values = {"5", '"5"', "true", '"true"', other}
    document = '{"a": {"v": %s}, "o": {"body": {"v": %s}}, "c": {"v": %s}, "v": %s}'
    printed = {
        "payload_hash": "to_json(a)",
        "key_hash": "o.body",
        "header_hash": "to_json(struct(c.v as v))",
        "effect_key": "to_json(struct(v))",
    }

    found = _ids(spark, tmp_path, [document % (one, one, one, one) for one in values], **printed)

    assert sorted(found) == sorted((f'{{"v":{one}}}',) * len(printed) for one in values)


def test_what_computes_with_a_field_finds_a_number(spark: SparkSession, tmp_path: Path) -> None:
    """A comparison is one of numbers, and times of whole numbers are found, also where the field is an id elsewhere."""
    lines = [
        '{"o": {"id": 1.5, "ms": 1795168800000.0, "s": 1795168800.25}}',
        '{"o": {"id": 10.25, "ms": 1795168801000, "s": 1795168801}}',
    ]
    columns = {
        "message_id": "case when o.id > 9.5 and o.id < 10.5 then concat(o.id, '') else 'low' end",
        "sequence": "cast(o.id * 4 as bigint)",
        "attempted_at": "timestamp_millis(o.ms)",
        "completed_at": "timestamp_seconds(o.s)",
    }

    found = _ids(spark, tmp_path, lines, **columns)

    assert [(row[0], row[1], row[2].second, row[3].microsecond) for row in found] == [
        ("10.25", 41, 1, 0),
        ("low", 6, 0, 250000),
    ]


def test_nan_is_nothing_where_it_is_not_used(spark: SparkSession, tmp_path: Path) -> None:
    """Python writes NaN and Infinity into JSON; an id of that kind is a fault, and none that other rows share."""
    (tmp_path / "a.jsonl").write_text(
        '{"message_id": "1", "n": NaN}\n{"message_id": NaN, "n": 1.5}\n{"message_id": 2.50, "n": -Infinity}\n'
    )

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("a.jsonl"))

    assert rows_of(found, "message_id") == [("1",), ("2.50",)]
    assert found.coverage.notes[0] == "a.jsonl:2: NaN and Infinity are no values of JSON"


def test_a_text_among_numbers_is_a_value_of_another_type(spark: SparkSession, tmp_path: Path) -> None:
    """Spark takes an empty text for a number that is missing; it is none where the field is used."""
    (tmp_path / "a.jsonl").write_text(
        '{"o": {"id": 1.5, "n": 1}}\n{"o": {"id": "", "n": 2}}\n{"o": {"id": 2, "n": ""}}\n'
    )

    found = evidence_of(
        spark,
        tmp_path,
        "produced",
        source=jsonl("a.jsonl"),
        columns={"message_id": "o.id", "sequence": "o.n"},
    )

    assert rows_of(found, "message_id") == [("1.5",)]
    assert found.coverage.unparsed == 2


def test_expressions_are_left_alone_but_for_what_uses_numbers() -> None:
    """Names in texts and after other objects are no uses."""
    assert rewritten("a.b + 1 > 'a.b' || a.c", {}) == "a.b + 1 > 'a.b' || a.c"
    assert rewritten("'a.b + 1' || x.b", {"a": ["a.b"]}) == "'a.b + 1' || x.b"
    assert rewritten("a.b = '12' or 'x' <> a.b", {"a": ["a.b"]}) == "a.b = '12' or 'x' <> a.b"
    assert rewritten("a.b = 12 or a.b = a.c", {"a": ["a.b"]}) == "(+a.b) = 12 or a.b = a.c"
    assert rewritten("a.b <=> c or d <> a.b", {"a": ["a.b"]}) == "a.b <=> c or d <> a.b"
    assert rewritten("1 < a.b and a.b in (1, 2)", {"a": ["a.b"]}) == "1 < (+a.b) and (+a.b) in (1, 2)"
    assert exact_fields("'get_json_object(a, b)'") == "'get_json_object(a, b)'"
    assert exact_fields("get_json_object(a") == "get_json_object(a"
    assert not has_texts("a", ["b.a", "'a'"])


def test_bytes_that_are_no_text_name_nothing(spark: SparkSession) -> None:
    """Java reads each as the same character: two ids that differ in them alone would be one."""
    bodies = [
        b'{"id": "a\xff"}',
        b'{"id": "a\xfe"}',
        b'{"id": "a", "x": "\xff"}',
        '{"id": "a\ufffd"}'.encode(),
    ]
    rows = spark.createDataFrame([(bytearray(body),) for body in bodies], "value binary")

    found = rows.selectExpr(exact_fields("get_json_object(string(value), '$.id')") + " AS id").collect()

    assert [row["id"] for row in found] == [None, None, "a", "a\ufffd"]

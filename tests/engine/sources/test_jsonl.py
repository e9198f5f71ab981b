"""JSON lines: ids stay what they were, and every line that cannot be used is counted and named."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from tests.engine.sources.builders import evidence_of, jsonl, rows_of

from tieout.engine.evidence import Evidence
from tieout.engine.sources.discovery import inputs_of
from tieout.engine.sources.json_lines import json_objects
from tieout.engine.sources.lines import lines_of
from tieout.engine.sources.source import BLOCK, FAULT, ROW
from tieout.errors import SourceError


def test_ids_are_not_changed_by_guessing_types(spark: SparkSession, tmp_path: Path) -> None:
    """A quoted id, a number, a number with leading zeros in quotes and a huge number are the texts they were."""
    (tmp_path / "p.jsonl").write_text(
        '{"id": "17"}\n{"id": 17}\n{"id": "00123"}\n{"id": 12345678901234567890123}\n{"id": 17.0}\n'
    )

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("p.jsonl"), columns={"message_id": "id"})

    ids = [row[0] for row in rows_of(found, "message_id")]
    assert sorted(ids) == sorted(["17", "17", "00123", "12345678901234567890123", "17.0"])
    assert found.present == {"message_id"}
    assert found.rows.columns[:3] == ["producer_id", "producer_session", "sequence"]


def test_bad_lines_are_counted_and_named(spark: SparkSession, tmp_path: Path) -> None:
    """A malformed line, two objects on one line, a wrong type and a torn last line are named with file and line."""
    (tmp_path / "a.jsonl").write_text(
        '{"message_id": "1", "offset": 1}\n'
        "\n"
        "not json\n"
        '{"message_id": "2", "offset": 2}{"message_id": "3", "offset": 3}\n'
        '{"message_id": "4", "offset": "four"}\n'
        '{"message_id": "5", "offset": 5.5}\n'
        '[{"message_id": "6"}]\n'
        '{"message_id": "7", "offs'
    )

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("*.jsonl"))

    assert rows_of(found, "message_id", "offset") == [("1", 1)]
    assert found.coverage.unparsed == 6
    assert not found.coverage.is_within_tolerance
    assert found.coverage.notes[:6] == (
        "a.jsonl:3: the line is not one JSON object",
        "a.jsonl:4: the line is not one JSON object",
        "a.jsonl:5: offset: expected a whole number below 2^62, found four",
        "a.jsonl:6: offset: expected a whole number below 2^62, found 5.5",
        "a.jsonl:7: the line is not one JSON object: it begins an array, whose members are expected on a line each (jq "
        "-c '.[]')",
        "1 more rows could not be read",
    )


def test_an_object_that_is_spread_over_lines_is_reported_as_such(spark: SparkSession, tmp_path: Path) -> None:
    """Printed to be read by people, an object has a line for each of its keys."""
    (tmp_path / "a.jsonl").write_text('{\n  "message_id": "1"\n}\n')

    found = evidence_of(spark, tmp_path, "produced", source=jsonl("*.jsonl"))

    assert found.coverage.unparsed == 3
    assert found.coverage.notes[0].startswith(
        "a.jsonl:1: the line is not one JSON object: it begins one that is spread over lines"
    )


def test_a_key_may_be_spelled_otherwise_on_other_lines(spark: SparkSession, tmp_path: Path) -> None:
    """Capital and small letters make no other column, as in CSV: what failed is not read as without outcome."""
    (tmp_path / "a.jsonl").write_text(
        '{"message_id": "1", "outcome": "ok"}\n'
        '{"message_id": "2", "Outcome": "failed", "partition": 7}\n'
        '{"MESSAGE_ID": "3", "OUTCOME": "failed", "Partition": "8"}\n'
    )

    found = evidence_of(spark, tmp_path, "delivered", source=jsonl("*.jsonl"))

    assert rows_of(found, "message_id", "partition", "outcome") == [
        ("1", None, "ok"),
        ("2", 7, "failed"),
        ("3", 8, "failed"),
    ]
    assert found.coverage.unparsed == 0
    assert found.present == {"message_id", "partition", "outcome"}


def test_a_key_in_two_spellings_on_one_line_is_no_row(spark: SparkSession, tmp_path: Path) -> None:
    """Which of both counts, nobody knows; keys within a value are the value's own."""
    (tmp_path / "a.jsonl").write_text(
        '{"message_id": "1", "outcome": "ok", "headers": {"a": 1, "A": 2}}\n'
        '{"message_id": "2", "outcome": "ok", "Outcome": "failed"}\n'
        '{"message_id": "3", "outcome": null, "Outcome": "failed"}\n'
    )

    found = evidence_of(spark, tmp_path, "delivered", source=jsonl("*.jsonl"))

    assert rows_of(found, "message_id", "outcome") == [("1", "ok"), ("3", "failed")]
    assert found.coverage.unparsed == 1
    assert found.coverage.notes[0] == "a.jsonl:2: a key stands twice: Outcome, outcome"


def test_a_file_with_a_key_that_stands_twice_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """One damaged object keeps its file from being read, and no other."""
    (tmp_path / "a.jsonl").write_text('{"message_id": "1"}\n{"message_id": "2", "message_id": "3"}\n')
    (tmp_path / "b.jsonl").write_text('{"message_id": "4"}\n')

    found = evidence_of(spark, tmp_path, "delivered", source=jsonl("*.jsonl"))

    assert rows_of(found, "message_id") == [("4",)]
    assert found.coverage.unparsed == 1
    assert not found.coverage.is_within_tolerance
    assert found.coverage.notes[0] == "a.jsonl: a key stands twice in one of its objects"


def test_a_whole_number_may_be_a_float_however_large(spark: SparkSession, tmp_path: Path) -> None:
    """Pandas writes 12345678.0 where a column has nulls; above 2^53 that need not be the number that was meant."""
    (tmp_path / "a.jsonl").write_text(
        '{"message_id": "1", "offset": 12345678.0, "processed_at": 1795168801000.0}\n'
        '{"message_id": "2", "offset": 9007199254740994.0}\n'
        '{"message_id": "3", "offset": 12345678.5}\n'
        '{"message_id": "4", "offset": 17.0}\n'
    )

    found = evidence_of(spark, tmp_path, "delivered", source=jsonl("*.jsonl"))

    assert rows_of(found, "message_id", "offset") == [("1", 12345678), ("4", 17)]
    assert found.coverage.undated == 1
    assert found.coverage.unset == 0
    assert found.coverage.unparsed == 2


def test_a_value_without_use_is_not_read(spark: SparkSession, tmp_path: Path) -> None:
    """An empty text is no number, which matters where the number is asked for, and nowhere else."""
    (tmp_path / "a.jsonl").write_text(
        '{"message_id": "1", "amount": 1, "`": "x"}\n{"message_id": "2", "amount": "", "`": ""}\n'
    )

    def read(**columns: str) -> Evidence:
        return evidence_of(spark, tmp_path, "delivered", source=jsonl("*.jsonl"), columns=columns)

    assert rows_of(read(), "message_id") == [("1",), ("2",)]
    for use in ("concat(AMOUNT, '')", "get_json_object(to_json(struct(*)), '$.amount')"):
        found = read(payload_hash=use)
        assert rows_of(found, "message_id", "payload_hash") == [("1", "1")]
        assert found.coverage.notes[0] == (
            "a.jsonl:2: a value is of another type than its field has on other lines"
        )
    assert rows_of(read(payload_hash="concat(````, '')"), "payload_hash") == [("",), ("x",)]


def test_what_the_options_allow_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """What is no JSON is a fault, unless the contract says that the writer does so; a second object stays one."""
    (tmp_path / "a.jsonl").write_text(
        '{"message_id": 01}\n{message_id: "2"}\n{message_id: "3"}] [{message_id: "4"}\n'
    )
    options = {"allowNumericLeadingZeros": True, "allowUnquotedFieldNames": True}

    strict = evidence_of(spark, tmp_path, "delivered", source=jsonl("*.jsonl"))
    loose = evidence_of(spark, tmp_path, "delivered", source=jsonl("*.jsonl", options=options))

    assert rows_of(strict, "message_id") == []
    assert rows_of(loose, "message_id") == [("1",), ("2",)]
    assert loose.coverage.notes[0] == "a.jsonl:3: the line is not one JSON object"


_LINES = (
    '{"a": 1, "b": "x"}',
    '{"a":2,"c":{"d":[1,2,{"e":null}]}}',
    '{"a":1.5,"b":"z"}{"a":2}',
    '{"a":1},{"a":2}',
    '{"a":1}] [{"a":2}',
    '{"a":1}],"x":[{"a":2}',
    '{"a":1}]}{"a":2}',
    '{"a":1}]],[[{"a":2}',
    '[{"a":1}]',
    '{"b":"\\u00e9\\n"}',
    '{"c":NaN}',
    "null",
    "{}",
    '  {"b":3} ',
    '{"a":9223372036854775808}',
    '{"c":[{"d":1},{"d":[2]}]}',
    '{"b":"}]","c":"[{"}',
)
_CHARACTERS = '{}[]",:\\0123456789abcdefnultr \t/*#\x01é-+.eE'


def test_what_is_one_object_is_what_another_parser_takes_for_one(spark: SparkSession, tmp_path: Path) -> None:
    """No line swallows another, whatever its brackets are; Python's parser says which are objects."""
    chance = random.Random(20261125)  # noqa: S311 - test data, no secret
    lines = [line for line in (_changed(chance) for _ in range(6000)) if line.strip()]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    files = inputs_of(spark, ("a.jsonl",), tmp_path, "jsonl").readable
    text = lines_of(spark, files)
    wide = cast(StructType, StructType.fromDDL("a string, b string, c struct<d: array<string>>"))

    flat = cast(StructType, StructType.fromDDL("a string, b string, c string"))
    for schema, numbers in (
        (StructType(), {}),
        (flat, {}),
        (wide, {}),
        (flat, {"a": ["a"]}),
        (wide, {"c": ["c.d"]}),
    ):
        rows = json_objects(text, schema, {}, numbers).orderBy(BLOCK, ROW).collect()
        taken = ["the line is not one JSON object" not in (row[FAULT] or "") for row in rows]
        assert [line for line, ours in zip(lines, taken, strict=True) if ours != _is_object(line)] == []
    assert 1000 < sum(_is_object(line) for line in lines) < len(lines) - 1000


def _changed(chance: random.Random) -> str:
    """One of the lines with up to three characters put in, taken out or replaced."""
    line = list(chance.choice(_LINES))
    for _ in range(chance.choice([0, 1, 1, 2, 3])):
        place = chance.randrange(len(line) + 1)
        line[place : place + chance.randrange(2)] = chance.choice([[], [chance.choice(_CHARACTERS)]])
    return "".join(line)


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def test_a_field_within_an_object_that_is_always_null_is_null(spark: SparkSession, tmp_path: Path) -> None:
    """In an hour without updates `before` of a Debezium envelope is null on every line, and its fields have no type."""
    line = '{"before": null, "after": {"id": "%s", "note": null, "tags": []}, "op": "c"}\n'
    (tmp_path / "a.jsonl").write_text(line % 1 + line % 2)
    columns = {
        "message_id": "coalesce(after.id, before.id)",
        "payload_hash": "before.key.`$oid`",
        "key_hash": "after.note.text",
        "effect_key": "get(after.tags.name, 0)",
    }

    found = evidence_of(spark, tmp_path, "delivered", source=jsonl("a.jsonl"), columns=columns)

    assert rows_of(found, *columns) == [("1", None, None, None), ("2", None, None, None)]
    assert found.coverage.unparsed == 0


def test_a_field_within_a_text_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    """Only what is null on every line may be an object."""
    (tmp_path / "a.jsonl").write_text('{"id": "1", "before": null}\n{"id": "2", "before": "x"}\n')

    with pytest.raises(SourceError, match=r"before is a text here, .*: get_json_object\(before, "):
        evidence_of(
            spark, tmp_path, "delivered", source=jsonl("a.jsonl"), columns={"message_id": "before.id"}
        )

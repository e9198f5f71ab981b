"""Options of Spark's readers: what is not known to keep every row is refused, before anything is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tieout.contracts import FilesSource
from tieout.contracts.sources.options import ALLOWED

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "contract.md"
HIDING = {
    "pathGlobFilter": "a*",
    "modifiedAfter": "2026-11-20T10:00:00",
    "modifiedBefore": "2026-11-20T10:00:00",
    "recursiveFileLookup": False,
    "ignoreCorruptFiles": True,
    "ignoreMissingFiles": True,
    "mode": "DROPMALFORMED",
    "samplingRatio": 0.1,
    "mergeSchema": False,
    "basePath": "/",
    "comment": "#",
    "allowComments": True,
    "dropFieldIfAllNull": True,
    "maxColumns": 1,
    "header": False,
    "lineSep": ";",
    "multiLine": True,
    "encoding": "UTF-16",
    "rowTag": "row",
    "versionAsOf": 1,
    "aKeyOfTheNextVersion": 1,
}


def _source(file_format: str, options: dict[str, Any]) -> FilesSource:
    return FilesSource.model_validate({"format": file_format, "path": "a", "options": options})


@pytest.mark.parametrize("file_format", ["jsonl", "csv", "parquet", "orc", "delta", "iceberg"])
@pytest.mark.parametrize("name", HIDING)
def test_an_option_that_can_hide_rows_is_refused(file_format: str, name: str) -> None:
    """In any capitals, as Spark takes them, and in every format."""
    for spelled in (name, name.lower(), name.upper()):
        with pytest.raises(
            ValidationError, match=rf"options(\.{spelled}: expected|: expected none, .* {spelled})"
        ):
            _source(file_format, {spelled: HIDING[name]})


def test_what_is_allowed_is_passed_on_as_spark_spells_it() -> None:
    """A reader that looks an option up finds it, however the contract writes it."""
    found = _source("csv", {"DELIMITER": ";", "Quote": "'", "ignoreleadingwhitespace": True})

    assert found.reader_options == {"sep": ";", "quote": "'", "ignoreLeadingWhiteSpace": "true"}


@pytest.mark.parametrize(
    ("file_format", "options", "reason"),
    [
        ("csv", {"sep": "||"}, r"options\.sep: expected one character, found '\|\|'"),
        ("csv", {"quote": ""}, r"options\.quote: expected one character, found ''"),
        ("csv", {"sep": ",", "delimiter": ";"}, r"options\.delimiter: expected sep once, found it twice"),
        ("csv", {"nullValue": "a\nb"}, r"options\.nullValue: expected a text on one line"),
        (
            "jsonl",
            {"allowSingleQuotes": "perhaps"},
            r"allowSingleQuotes: expected true or false, found 'perhaps'",
        ),
        ("jsonl", {"sep": ";"}, r"options\.sep: expected one of allowBackslash"),
        ("parquet", {"int96RebaseMode": "none"}, r"expected EXCEPTION, CORRECTED or LEGACY, found 'none'"),
        ("orc", {"mergeSchema": True}, r"expected no option for orc"),
    ],
)
def test_a_value_that_is_none_for_its_option_is_refused(
    file_format: str, options: dict[str, Any], reason: str
) -> None:
    """Where the contract says it, and before Spark starts."""
    with pytest.raises(ValidationError, match=reason):
        _source(file_format, options)


def test_the_docs_list_what_is_allowed_and_why() -> None:
    """A reader of the contract's page sees the list that the code has."""
    table = DOCS.read_text(encoding="utf-8").partition("### Reader options")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+?) \|$", table, re.MULTILINE)
    listed = {
        (file_format, name): (takes, why)
        for file_format, names, takes, why in rows
        for name in re.findall(r"`(\w+)`", names)
    }

    assert listed == {
        (file_format, name): (option.expected, option.reason)
        for file_format, options in ALLOWED.items()
        for name, option in options.items()
    }

"""Lines of text files as rows, each with its place, and the line numbers of those that are reported."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tieout.encodings import opened
from tieout.engine.sources.inputs import Input
from tieout.engine.sources.listing import of_these_files
from tieout.engine.sources.paths import local_path
from tieout.engine.sources.source import BLOCK, FILE, ROW, TEXT


def lines_of(spark: SparkSession, files: Sequence[Input]) -> DataFrame:
    """Return every line that is not blank.

    | TEXT        | FILE              | BLOCK | ROW |
    |-------------|-------------------|-------|-----|
    | {"id": "1"} | file:///e/a.jsonl | 0     | 0   |

    Raises:
        SourceError: where Spark would read other files than these.
    """
    line = F.col("value")
    rows = spark.read.text([file.read_path for file in files])
    return (
        of_these_files(rows, files)
        .select(
            F.when(F.startswith(line, F.lit("\ufeff")), F.substr(line, F.lit(2))).otherwise(line).alias(TEXT),
            uri_of(rows, files).alias(FILE),
            block_of(rows).alias(BLOCK),
            F.monotonically_increasing_id().alias(ROW),
        )
        .where(F.trim(TEXT) != "")
    )


def uri_of(rows: DataFrame, files: Sequence[Input]) -> Column:
    """Return the URI of the file that each of the rows is in, as Spark reads them; of a copy, that of its original."""
    uri = rows.metadataColumn("_metadata").getField("file_path")
    copies = [(Path(file.copy).name, Path(file.path).as_uri()) for file in files if file.copy is not None]
    if not copies:
        return uri
    originals = F.create_map(*[F.lit(text) for pair in copies for text in pair])
    return F.coalesce(F.try_element_at(originals, F.substring_index(uri, "/", -1)), uri)


def block_of(rows: DataFrame) -> Column:
    """Return where in its file the part begins that each of the rows is in; a file may itself have such a column."""
    return rows.metadataColumn("_metadata").getField("file_block_start")


def line_numbers(samples: Sequence[tuple[str, str]]) -> list[int | None]:
    """Return the number of each (file URI, line), counted from 1, or None where the file is not at hand.

    Spark does not know line numbers. Only the few files with a reported line are read again, until
    its text is found; equal lines of one file get the numbers of its first, second, … occurrence.
    """
    places_of_lines: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, (uri, text) in enumerate(samples):
        places_of_lines[uri][text].append(place)
    numbers: list[int | None] = [None] * len(samples)
    for uri, texts in places_of_lines.items():
        path = local_path(uri)
        if path.is_file():
            _number(path, texts, numbers)
    return numbers


def first_line(path: Path) -> str:
    """Return the first line that is not blank, without its end and its byte order mark; empty where there is none."""
    lines = (line.removeprefix("\ufeff") for line in _lines(path))
    return next((line for line in lines if line.strip()), "")


def _number(path: Path, places_of_lines: dict[str, list[int]], numbers: list[int | None]) -> None:
    missing = sum(len(places) for places in places_of_lines.values())
    for number, line in enumerate(_lines(path), start=1):
        places = places_of_lines.get(line) or places_of_lines.get(line.removeprefix("\ufeff"))
        if places:
            numbers[places.pop(0)] = number
            missing -= 1
        if missing == 0:
            return


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines as Spark cuts them, at any of the three line ends; bytes that do not decode are replaced."""
    with opened(path) as file:
        for line in file:
            yield line.rstrip("\n")

"""JSON lines as rows: the fields that any of the objects has, in whatever spelling, and what is wrong with a line."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from tieout.engine.sources.inputs import Input, spark_path
from tieout.engine.sources.lines import json_fault, lines_of
from tieout.engine.sources.source import FAULT, HIDDEN, TEXT, Request

CORRUPT: Final = "_tieout_corrupt"
RECORD: Final = "_tieout_record"
"""A parsed line, and in it the text of one that does not parse."""
_CASE_SENSITIVE: Final = "spark.sql.caseSensitive"


def json_rows(request: Request, files: Sequence[Input], options: Mapping[str, str]) -> DataFrame:
    """Return the objects of JSON lines, with the fields that any of the lines has."""
    found = inferred(request.spark, files, options)
    text = {name.lower() for name in request.text_columns}
    types = {(field.name.lower(), field.dataType) for field in found.fields}
    mixed = {name for name, count in Counter(name for name, _ in types).items() if count > 1}
    fields = [
        StructField(field.name, StringType() if field.name.lower() in text | mixed else field.dataType)
        for field in found.fields
        if field.name != CORRUPT
    ]
    return json_objects(lines_of(request.spark, files), StructType(fields), options)


def inferred(spark: SparkSession, files: Sequence[Input], options: Mapping[str, str]) -> StructType:
    """Return the fields that any of the files' objects has, each in every spelling.

    Otherwise Spark takes one spelling for all, and a value under another one for none.

    Raises:
        AnalysisException: where a key stands twice in an object.
    """
    paths = [spark_path(file.path) for file in files]
    before = spark.conf.get(_CASE_SENSITIVE)
    spark.conf.set(_CASE_SENSITIVE, "true")
    try:
        reader = spark.read.options(**options)
        return reader.json(paths, mode="PERMISSIVE", columnNameOfCorruptRecord=CORRUPT).schema
    finally:
        spark.conf.set(_CASE_SENSITIVE, str(before))


def json_objects(lines: DataFrame, schema: StructType, options: Mapping[str, str]) -> DataFrame:
    """Return the lines as the fields of the schema, and `HIDDEN`; what is not one object has a fault.

    Fields whose names differ in capital letters only are one, as columns are everywhere else.
    """
    if not schema.fields:
        return lines.select(*(HIDDEN[:-1]), json_fault().alias(FAULT))
    with_corrupt = StructType([*schema.fields, StructField(CORRUPT, StringType())])
    settings = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    # Under numbers, as Spark does not tell names apart that differ in capital letters only.
    numbered = StructType([StructField(f"_{n}", field.dataType) for n, field in enumerate(with_corrupt)])
    parsed = lines.withColumn(RECORD, F.from_json(TEXT, with_corrupt, settings).cast(numbered))
    spelled: dict[str, list[tuple[str, Column]]] = defaultdict(list)
    for number, field in enumerate(schema):
        spelled[field.name.lower()].append((field.name, F.col(RECORD).getField(f"_{number}")))
    fields = [F.coalesce(*[value for _, value in alike]).alias(alike[0][0]) for alike in spelled.values()]
    corrupt = F.col(RECORD).getField(f"_{len(schema)}")
    broken = F.when(corrupt.isNotNull(), "the line does not parse as JSON")
    doubled = [_twice(alike) for alike in spelled.values() if len(alike) > 1]
    return parsed.select(*fields, *HIDDEN[:-1], F.coalesce(json_fault(), broken, *doubled).alias(FAULT))


def _twice(alike: Sequence[tuple[str, Column]]) -> Column:
    """Return that a key stands twice in the object, where more than one of its spellings has a value, else null."""
    found = reduce(Column.__add__, [value.isNotNull().cast("int") for _, value in alike])
    return F.when(found > 1, F.lit(f"a key stands twice: {', '.join(name for name, _ in alike)}"))

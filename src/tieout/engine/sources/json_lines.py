"""JSON lines as rows: the fields that any of the objects has, in whatever spelling, and what is wrong with a line."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from tieout.engine.sources.inputs import Input, spark_path
from tieout.engine.sources.lines import lines_of
from tieout.engine.sources.source import FAULT, HIDDEN, TEXT, Request

CORRUPT: Final = "_tieout_corrupt"
RECORD: Final = "_tieout_record"
"""A parsed line, and in it the text of one that does not parse."""
_OBJECTS: Final = "_tieout_objects"
_NOT_UTF8: Final = "the line is not UTF-8"
_NOT_ONE_OBJECT: Final = "the line is not one JSON object"
_OTHER_TYPE: Final = "a value is of another type than its field has on other lines"
_STRICT: Final = {"allowNonNumericNumbers": "false"}
_NO_OPTIONS: Final[Mapping[str, str]] = MappingProxyType({})
_CASE_SENSITIVE: Final = "spark.sql.caseSensitive"


def json_rows(request: Request, files: Sequence[Input], options: Mapping[str, str]) -> DataFrame:
    """Return the objects of JSON lines, with the fields that any of the lines has; those without use are null."""
    found = inferred(request.spark, files, options)
    text = {name.lower() for name in request.text_columns}
    types = {(field.name.lower(), field.dataType) for field in found.fields}
    mixed = {name for name, count in Counter(name for name, _ in types).items() if count > 1}
    fields = [
        StructField(field.name, StringType() if field.name.lower() in text | mixed else field.dataType)
        for field in found.fields
        if field.name != CORRUPT
    ]
    needed = StructType([field for field in fields if request.needs(field.name)])
    unused = {field.name.lower(): field.name for field in fields if not request.needs(field.name)}
    rows = json_objects(lines_of(request.spark, files), needed, options)
    return rows.select("*", *(F.lit(None).cast(StringType()).alias(name) for name in unused.values()))


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
    # Under numbers, as Spark does not tell names apart that differ in capital letters only.
    numbered = StructType([StructField(f"_{n}", field.dataType) for n, field in enumerate(schema)])
    corrupt = StructField(CORRUPT, StringType())
    record = _parsed(TEXT, _bracketed(schema).add(corrupt), options).cast(_bracketed(numbered).add(corrupt))
    parsed = lines.withColumn(RECORD, record)
    objects = F.col(RECORD).getField(_OBJECTS)
    spelled: dict[str, list[tuple[str, Column]]] = defaultdict(list)
    for number, field in enumerate(schema):
        spelled[field.name.lower()].append((field.name, F.get(objects, 0).getField(f"_{number}")))
    fields = [F.coalesce(*[value for _, value in alike]).alias(alike[0][0]) for alike in spelled.values()]
    is_whole = F.col(RECORD).getField(CORRUPT).isNull() & F.is_valid_utf8(TEXT)
    is_read = is_whole & _is_one(objects, TEXT, options)
    fault = F.when(~is_read, F.coalesce(json_fault(TEXT, options), F.lit(_OTHER_TYPE)))
    doubled = [_twice(alike) for alike in spelled.values() if len(alike) > 1]
    return parsed.select(*fields, *HIDDEN[:-1], F.coalesce(fault, *doubled).alias(FAULT))


def json_fault(text: str = TEXT, options: Mapping[str, str] = _NO_OPTIONS) -> Column:
    """Return why the text is not exactly one JSON object, or null where it is."""
    objects = _parsed(text, _bracketed(StructType()), options).getField(_OBJECTS)
    is_one = _is_one(objects, text, options)
    return F.when(~F.is_valid_utf8(text), _NOT_UTF8).when(~is_one, _NOT_ONE_OBJECT)


def _bracketed(schema: StructType) -> StructType:
    return StructType([StructField(_OBJECTS, ArrayType(schema))])


def _parsed(text: str, schema: StructType, options: Mapping[str, str]) -> Column:
    """Return the text parsed as what is in the array of an object; where it ends too early, that is null.

    Spark's parser stops at the end of what it was asked for, so of two objects that share a line it would lose the
    second.
    """
    inside = F.concat(F.lit(f'{{"{_OBJECTS}":['), F.col(text), F.lit("]}"))
    settings = {**_STRICT, **options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    return F.from_json(inside, schema, settings)


def _is_one(objects: Column, text: str, options: Mapping[str, str]) -> Column:
    """Return whether the text, parsed as these objects, is one, and nothing else.

    A text may end the array that it was put into, and go on behind it. What may follow there is a key or the end of the
    object, and neither may follow an array in an array.
    """
    line = F.col(text)
    twice = F.concat(F.lit("[["), line, F.lit("]]"))
    arrays = F.from_json(twice, ArrayType(ArrayType(StructType())), {**_STRICT, **options})
    is_enclosed = ~F.contains(line, F.lit("]")) | (F.size(arrays) == 1)
    is_one = line.rlike(r"^\s*\{") & (F.size(objects) == 1) & is_enclosed
    return F.coalesce(is_one, F.lit(False))


def _twice(alike: Sequence[tuple[str, Column]]) -> Column:
    """Return that a key stands twice in the object, where more than one of its spellings has a value, else null."""
    found = reduce(Column.__add__, [value.isNotNull().cast("int") for _, value in alike])
    return F.when(found > 1, F.lit(f"a key stands twice: {', '.join(name for name, _ in alike)}"))

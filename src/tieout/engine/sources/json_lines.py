"""Reads JSON lines: the fields of all objects, in any spelling, and the faults of lines."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType

from tieout.engine.sources.expressions import is_classic
from tieout.engine.sources.inputs import Input
from tieout.engine.sources.json_bounds import (
    HALF_SURROGATE,
    TOO_DEEP,
    TOO_MANY,
    bounded,
    has_any_key,
    has_half_surrogate,
    is_deep,
)
from tieout.engine.sources.json_nulls import with_null_objects
from tieout.engine.sources.json_numbers import (
    MARKED,
    NUMBERS,
    all_texts,
    as_texts,
    converted,
    has_text,
    has_texts,
    inexact_paths,
    is_no_number,
    is_other,
    is_rounded,
    marked,
    printed_paths,
)
from tieout.engine.sources.lines import lines_of
from tieout.engine.sources.source import FAULT, HIDDEN, TEXT, Request, is_reserved

CORRUPT: Final = "_tieout_corrupt"
RECORD: Final = "_tieout_record"
"""A parsed line, with the text of a line that does not parse."""
_OBJECTS: Final = "_tieout_objects"
_NOT_UTF8: Final = "the line is not UTF-8"
_NOT_ONE_OBJECT: Final = "the line is not one JSON object"
_AN_ARRAY: Final = (
    f"{_NOT_ONE_OBJECT}: it begins an array, whose members are expected on a line each (jq -c '.[]')"
)
_SPREAD: Final = (
    f"{_NOT_ONE_OBJECT}: it begins one that is spread over lines; expected one on a line (jq -c .)"
)
_OTHER_TYPE: Final = "a value is of another type than its field has on other lines"
_NO_NUMBER: Final = "NaN and Infinity are no values of JSON"
_OF_OTHER_SYNTAX: Final = "allow"
"""Prefix of options that allow names, numbers or comments that are not valid JSON."""
_NO_OPTIONS: Final[Mapping[str, str]] = MappingProxyType({})
_WITHOUT_NULLS: Final = "dropFieldIfAllNull"
_CASE_SENSITIVE: Final = "spark.sql.caseSensitive"


def json_rows(request: Request, files: Sequence[Input], options: Mapping[str, str]) -> DataFrame:
    """Return the objects of JSON lines with the fields of all lines; unused fields are null."""
    lines = lines_of(request.spark, files)
    schema = with_null_objects(
        inferred(lines, files, options),
        lambda: inferred(lines, files, {**options, _WITHOUT_NULLS: "true"}),
        request.expressions or (),
    )
    text = {name.lower() for name in request.text_columns}
    types = {(field.name.lower(), field.dataType) for field in schema.fields}
    mixed = {name for name, count in Counter(name for name, _ in types).items() if count > 1}
    fields = [
        StructField(field.name, StringType() if field.name.lower() in text | mixed else field.dataType)
        for field in schema.fields
        if not is_reserved(field.name)
    ]
    kept, excess = bounded(field for field in fields if request.needs(field.name))
    needed = StructType(kept)
    unused = {field.name.lower(): field.name for field in fields if not request.needs(field.name)}
    numbers = {} if _has_other_syntax(options) else _numbers_of(needed, schema, request)
    numeric = frozenset(name.lower() for name in request.number_columns)
    rows = json_objects(lines, needed, options, numbers, numeric)
    if excess:
        too_many = F.when(has_any_key(F.col(TEXT), excess), F.lit(TOO_MANY))
        rows = rows.withColumn(FAULT, F.coalesce(FAULT, too_many))
    nulls = [F.lit(None).cast("string").alias(name) for name in unused.values()]
    return rows.select("*", *nulls) if nulls else rows


def _has_other_syntax(options: Mapping[str, str]) -> bool:
    allowed = [name for name, value in options.items() if value.lower() != "false"]
    return any(name.lower().startswith(_OF_OTHER_SYNTAX) for name in allowed)


def _numbers_of(needed: StructType, schema: StructType, request: Request) -> dict[str, list[str]]:
    """Return the needed fields with numbers whose original text is needed, each with their paths."""
    inferred_types = {field.name: field.dataType for field in schema.fields}
    numeric = {name.lower() for name in request.number_columns}
    unmapped = {name.lower() for name in request.text_columns}
    paths: dict[str, list[str]] = {}
    for field in needed.fields:
        name = field.name
        rounded = list(inexact_paths(inferred_types[name], name))
        is_text = name.lower() in unmapped or request.expressions is None
        if name.lower() in numeric or not (is_text or has_texts(name, request.expressions or ())):
            rounded = []
        paths[name] = rounded + printed_paths(field.dataType, name, request.expressions or ())
    return {name: field_paths for name, field_paths in paths.items() if field_paths}


def inferred(lines: DataFrame, files: Sequence[Input], options: Mapping[str, str]) -> StructType:
    """Return the fields of all objects in the files, of which these are the lines, each in every spelling.

    Otherwise Spark uses one spelling for all, and reads values under another one as null.

    Raises:
        AnalysisException: if an object has a duplicate key.
    """
    spark, paths = lines.sparkSession, [file.read_path for file in files]
    settings = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    before = spark.conf.get(_CASE_SENSITIVE)
    spark.conf.set(_CASE_SENSITIVE, "true")
    try:
        if not is_classic(spark):
            return spark.read.options(**settings).json(paths).schema
        schema = _schema_of(spark, lines.where(~is_deep(F.col(TEXT))), settings)
        # Spark checks for duplicate keys only when it reads files.
        return spark.read.options(**settings).schema(schema).json(paths).schema
    finally:
        spark.conf.set(_CASE_SENSITIVE, str(before))


def _schema_of(spark: SparkSession, lines: DataFrame, settings: Mapping[str, str]) -> StructType:
    """Return the fields of the objects in `TEXT`; PySpark itself infers schemas from paths only."""
    jvm: Any = spark._jvm
    reader: Any = spark.read.options(**settings)
    texts = getattr(lines.select(TEXT)._jdf, "as")(jvm.org.apache.spark.sql.Encoders.STRING())
    return DataFrame(reader._jreader.json(texts), spark).schema


def json_objects(
    lines: DataFrame,
    schema: StructType,
    options: Mapping[str, str],
    numbers: Mapping[str, Sequence[str]] = MappingProxyType({}),
    numeric: frozenset[str] = frozenset(),
) -> DataFrame:
    """Return the lines as the fields of the schema, and `HIDDEN`; a line that is not one object has a fault.

    Fields whose names differ only in capital letters are merged, as columns are case-insensitive. In the fields of
    `numbers`, numbers keep their original text; a column `MARKED` holds each of them again. The text of fields in
    `numeric`, in lower case, is not needed.
    """
    exact = StructType([_exact(field, field.name in numbers) for field in schema.fields])
    # In numbered columns, as Spark does not distinguish names that differ only in capital letters.
    numbered = StructType([StructField(f"_{n}", field.dataType) for n, field in enumerate(exact)])
    needed_texts = [place for place, field in enumerate(exact) if field.name.lower() not in numeric]
    parsed = _with_record(lines, exact, numbered, options, needed_texts, is_marked=bool(numbers))
    objects = F.col(RECORD).getField(_OBJECTS)
    spelled: dict[str, list[tuple[str, Column]]] = defaultdict(list)
    for number, field in enumerate(exact):
        spelled[field.name.lower()].append((field.name, F.get(objects, 0).getField(f"_{number}")))
    is_whole = F.col(RECORD).getField(CORRUPT).isNull() & F.is_valid_utf8(TEXT)
    is_text = ~has_half_surrogate(F.col(TEXT)) & ~is_deep(F.col(TEXT))
    is_read = is_whole & is_text & _is_one_object(objects, TEXT, options)
    fault = F.when(~is_read, F.coalesce(json_fault(TEXT, options), F.lit(_OTHER_TYPE)))
    faults = [_duplicate_key_fault(spellings) for spellings in spelled.values() if len(spellings) > 1]
    kinds = {field.name: field.dataType for field in exact.fields}
    texts = [
        value
        for spellings in spelled.values()
        for name, value in spellings
        if isinstance(kinds[name], StringType)
    ]
    if numbers:
        first = F.get(objects, 0)
        is_mismatched = [is_other(first.getField(f"_{n}"), field.dataType) for n, field in enumerate(schema)]
        faults.append(F.when(reduce(Column.__or__, is_mismatched), F.lit(_OTHER_TYPE)))
    not_numbers = [F.when(is_no_number(value), F.lit(_NO_NUMBER)) for value in texts]
    return parsed.select(
        *_fields(spelled, kinds, numbers, is_marked=bool(numbers)),
        *HIDDEN[:-1],
        F.coalesce(fault, *faults, *not_numbers).alias(FAULT),
    )


def _exact(field: StructField, is_exact: bool) -> StructField:
    return StructField(field.name, as_texts(field.dataType) if is_exact else field.dataType)


def _fields(
    spelled: Mapping[str, Sequence[tuple[str, Column]]],
    kinds: Mapping[str, DataType],
    numbers: Mapping[str, Sequence[str]],
    *,
    is_marked: bool,
) -> Iterator[Column]:
    for spellings in spelled.values():
        name, kind = spellings[0][0], kinds[spellings[0][0]]
        value = F.coalesce(*[value for _, value in spellings])
        if not is_marked:
            yield value.alias(name)
            continue
        paths = [path for spelling, _ in spellings for path in numbers.get(spelling, ())]
        yield converted(value, kind).alias(name, metadata={NUMBERS: paths})
        if paths:
            with_marks = converted(value, kind, lambda text: text).alias(name)
            yield F.struct(with_marks).alias(f"{MARKED}{name.lower()}")


def _with_record(
    lines: DataFrame,
    schema: StructType,
    numbered: StructType,
    options: Mapping[str, str],
    needed_texts: Sequence[int],
    *,
    is_marked: bool,
) -> DataFrame:
    """Return the lines with `RECORD`; with `is_marked`, its values are texts, those of numbers with a mark.

    Otherwise they have the schema's types, and a line is parsed a second time with marks if one of the `needed_texts`
    may be a number that Spark rounded.
    """
    corrupt = StructField(CORRUPT, StringType())
    of_texts, numbered_texts = all_texts(schema), all_texts(numbered)
    line = F.col(TEXT)
    in_marks = _parsed(marked(line), _bracketed(of_texts).add(corrupt), options)
    in_marks = in_marks.cast(_bracketed(numbered_texts).add(corrupt))
    if is_marked:
        return lines.withColumn(RECORD, in_marks)
    record = _parsed(line, _bracketed(schema).add(corrupt), options).cast(_bracketed(numbered).add(corrupt))
    parsed = lines.withColumn(RECORD, record)
    texts = [numbered.fields[place] for place in needed_texts if has_text(numbered.fields[place].dataType)]
    if _has_other_syntax(options) or not texts:
        return parsed
    first = F.get(F.col(RECORD).getField(_OBJECTS), 0)
    rounded = reduce(
        Column.__or__, [is_rounded(first.getField(field.name), field.dataType, line) for field in texts]
    )
    exact = F.struct(
        F.transform(in_marks.getField(_OBJECTS), lambda field: converted(field, numbered)).alias(_OBJECTS),
        in_marks.getField(CORRUPT).alias(CORRUPT),
    )
    is_whole = F.col(RECORD).getField(CORRUPT).isNull()
    return parsed.withColumn(RECORD, F.when(is_whole & rounded, exact).otherwise(F.col(RECORD)))


def json_fault(text: str = TEXT, options: Mapping[str, str] = _NO_OPTIONS) -> Column:
    """Return why the text is not exactly one JSON object, or null if it is."""
    objects = _parsed(F.col(text), _bracketed(StructType()), options).getField(_OBJECTS)
    is_one = _is_one_object(objects, text, options)
    begins_array, is_spread = F.ltrim(text).startswith("["), F.trim(text) == "{"
    reason = F.when(begins_array, _AN_ARRAY).when(is_spread, _SPREAD).otherwise(_NOT_ONE_OBJECT)
    line = F.col(text)
    fault = (
        F.when(~F.is_valid_utf8(text), _NOT_UTF8)
        .when(has_half_surrogate(line), HALF_SURROGATE)
        .when(is_deep(line), TOO_DEEP)
    )
    return fault.when(~is_one, reason)


def _bracketed(schema: StructType) -> StructType:
    return StructType([StructField(_OBJECTS, ArrayType(schema))])


def _parsed(text: Column, schema: StructType, options: Mapping[str, str]) -> Column:
    """Return the text parsed within an array in an object; null if the text ends too early.

    Spark's parser stops at the end of the first value, so it would lose a second object on the same line.
    """
    inside = F.concat(F.lit(f'{{"{_OBJECTS}":['), text, F.lit("]}"))
    settings = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    return F.from_json(inside, schema, settings)


def _is_one_object(objects: Column, text: str, options: Mapping[str, str]) -> Column:
    """Return whether the text, parsed as these objects, is exactly one object.

    A text may close the array that it was wrapped in, and continue after it. There a key or the end of the object may
    follow, which is not valid after an array in an array.
    """
    line = F.col(text)
    in_two_arrays = F.concat(F.lit("[["), line, F.lit("]]"))
    arrays = F.from_json(in_two_arrays, ArrayType(ArrayType(StructType())), {**options, "mode": "PERMISSIVE"})
    is_enclosed = ~F.contains(line, F.lit("]")) | (F.size(arrays) == 1)
    is_one = line.rlike(r"^\s*\{") & (F.size(objects) == 1) & is_enclosed
    return F.coalesce(is_one, F.lit(False))


def _duplicate_key_fault(spellings: Sequence[tuple[str, Column]]) -> Column:
    """Return the fault of a duplicate key, if more than one of its spellings has a value, else null."""
    value_count = reduce(Column.__add__, [value.isNotNull().cast("int") for _, value in spellings])
    return F.when(value_count > 1, F.lit(f"a key stands twice: {', '.join(name for name, _ in spellings)}"))

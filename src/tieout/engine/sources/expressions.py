"""Checks a contract's expressions with Spark's parser and analyser before any is evaluated.

Each is parsed before it is analysed, because analysing a query inside it would open the files that it names. The
analysed plan shows what names do not: non-deterministic expressions, values of the session or of the time of the run,
and operators that filter rows or use other rows. Neither is available through Spark Connect; there only the contract's
own rules check the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tieout.contracts.expressions import OTHER_ROWS, REFUSED, SUBQUERY, refusal, refusal_reason, refused
from tieout.engine.sources.json_numbers import NUMBERS, bounded_times, exact_fields, rewritten
from tieout.engine.sources.named_columns import is_path, paths_of
from tieout.errors import SourceError

_EXPRESSIONS: Final = "org.apache.spark.sql.catalyst.expressions."
_COMPUTED_NAME: Final = "ExpressionWithUnresolvedIdentifier"
_OF_THE_SESSION: Final = {
    "CallMethodViaReflection": "reflect",
    "TryReflect": "try_reflect",
    "AesEncrypt": "aes_encrypt",
    "CurrentCatalog": "current_catalog",
    "CurrentDatabase": "current_database",
    "CurrentDate": "current_date",
    "CurrentTime": "current_time",
    "CurrentTimeZone": "current_timezone",
    "CurrentTimestamp": "current_timestamp",
    "CurrentUser": "current_user",
    "LocalTimestamp": "localtimestamp",
    "Now": "now",
    "SparkVersion": "version",
    "VariableReference": "a variable of the session",
}
"""Expressions that Spark counts as deterministic, but whose value depends on the run or the user."""
_OF_ROWS: Final = frozenset({"Project", "Generate", "Aggregate", "LocalRelation"})
"""The operators of a plan that keep every row: others filter, multiply, sort or number rows."""
_OPERATORS: Final = "org.apache.spark.sql.catalyst.plans.logical."
NOT_ANALYSED: Final = (PySparkException, Py4JJavaError)
"""The errors that Spark raises for an expression that it cannot parse or analyse, including some of Java's."""
_TOO_DEEP: Final = "StackOverflowError"
_OF_NUMBERS: Final = re.compile("NUMERIC|INTEGRAL")
_SHOWN_COLUMNS: Final = 40
_NO_WORD: Final = re.compile(r"[^\w.`]")
_FOREIGN_NAME: Final = re.compile(r"[\w.@$#:-]*[@$#:-][\w.@$#:-]*")
"""Field names of other programs that are not valid in SQL, such as `@timestamp` or `id.$oid`."""
_TIME_AS_NAME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
"""A time as a column name: the CSV file has no header."""
_IN_BACKTICKS: Final = "the name of a column that is no word stands in backticks: `{}`"
_CONSTANT_COLUMNS: Final = ("outcome", "transaction_state", "content", "kind")
"""Canonical columns for which a contract may give one constant for all rows."""
_SEPARATORS: Final = {";": "';'", "\t": '"\\t"', "|": "'|'", ",": "','"}
"""Separators of CSV columns, and their notation in a contract."""
_OF_FOLDERS: Final = (
    "folders are called {}=…, and their names are no columns: write the column into the files, or read those of a "
    "Kafka Connect sink with kind: connect_files"
)
_WITHIN_TEXT: Final = (
    "{0} is a text here, or on one line at least: get_json_object({0}, '$.NAME') reads a field in it"
)
_SHOWN_TEXT: Final = 80
_NO_ROW: Final = "it leaves out or multiplies rows"
_METADATA: Final = "_metadata"
_BLOCK_METADATA: Final = re.compile(
    rf"(?<![\w.]){_METADATA}\b(?!\s*\.\s*file_(?:name|path|size|modification_time)\b)", re.IGNORECASE
)
"""Fields of Spark's hidden file metadata that are not the same for the whole file.

Source: "File Metadata" of Spark SQL's guide to data sources.
"""
_BLOCKS: Final = f"{_METADATA}: its value depends on how Spark divides the files"
_CHANGING: Final = "a function that gives another value each time"
_MOVING: Final = "a date or time such as 'now': its value depends on when the run is made"


def require_plain(
    source: DataFrame, expressions: Mapping[str, str], *, written: Callable[[str], str] = str
) -> None:
    """Refuse expressions, keyed by their path in the contract, that use more than one row's columns.

    `written` returns an expression as passed to Spark. Expressions that do not parse or analyse are not refused here.

    Raises:
        SourceError: with the path, the forbidden part and the reason.
    """
    column_names = {f"`{name}`" for name in source.columns} | set(source.columns)
    computed = {place: text for place, text in expressions.items() if text.strip() not in column_names}
    has_metadata = _METADATA in {name.lower() for name in source.columns}
    for place, text in computed.items():
        reason = refused(text) or next(_refused_in(_parsed(source.sparkSession, text)), None)
        if reason is None and not has_metadata and _BLOCK_METADATA.search(text.replace("`", "")):
            reason = _BLOCKS
        if reason is not None:
            raise SourceError(f"{place}: {refusal(reason)}")
    if computed and is_classic(source.sparkSession):
        _require_plain_plan(source, {place: written(text) for place, text in computed.items()})


def _require_plain_plan(source: DataFrame, expressions: Mapping[str, str]) -> None:
    """Refuse expressions by their analysed plan over the source's columns.

    Raises: as `require_plain`.
    """
    try:
        if _refused_by_plan(source, list(expressions.values())) is None:
            return
    except NOT_ANALYSED:
        pass  # one of them does not analyse: each is checked separately
    for place, text in expressions.items():
        try:
            reason = _refused_by_plan(source, [text])
        except NOT_ANALYSED:
            continue
        if reason is not None:
            raise SourceError(f"{place}: {refusal(reason)}")


def is_classic(spark: SparkSession) -> bool:
    """Return whether the session's JVM is accessible, which it is not through Spark Connect."""
    return hasattr(spark, "_jsparkSession")


def negates(spark: SparkSession, text: str) -> bool:
    """Return whether a condition has a negation, such as `<>` or NOT IN, which a missing value might satisfy.

    Always False through Spark Connect.
    """
    return any(str(node["class"]).endswith(".Not") for node in _nodes(_parsed(spark, text)))


def _parsed(spark: SparkSession, text: str) -> Any:
    """Return Spark's parse tree of the expression, or nothing if it does not parse."""
    if not is_classic(spark):
        return []
    session: Any = spark._jsparkSession
    try:
        return json.loads(session.sessionState().sqlParser().parseExpression(text).toJSON())
    except NOT_ANALYSED:
        return []


def _refused_in(tree: Any) -> Iterator[str]:
    for node in _nodes(tree):
        name = str(node["class"])
        if name.endswith(f".{_COMPUTED_NAME}"):
            yield refusal_reason("identifier")
        elif not name.startswith(_EXPRESSIONS) and ".catalyst.plans." in name:
            yield SUBQUERY
        elif name.endswith(".UnresolvedFunction"):
            function = str(node.get("nameParts", "")).strip("[]").rpartition(", ")[2].lower()
            if function in REFUSED:
                yield refusal_reason(function)


def _refused_by_plan(source: DataFrame, texts: list[str]) -> str | None:
    """Return the forbidden part of the plan of these expressions over no rows, or None."""
    spark: Any = source.sparkSession._jsparkSession
    jvm: Any = source.sparkSession._jvm
    empty = spark.createDataFrame(jvm.java.util.ArrayList(), source._jdf.schema())
    plan = DataFrame(empty, source.sparkSession).selectExpr(*texts)._jdf.queryExecution().analyzed()
    for node in _nodes(json.loads(plan.toJSON())):
        package, _, name = str(node["class"]).rpartition(".")
        if name in _OF_THE_SESSION:
            return refusal_reason(_OF_THE_SESSION[name])
        if f"{package}." == _OPERATORS and name not in _OF_ROWS:
            return OTHER_ROWS if name == "Window" else f"{name.lower()}: {_NO_ROW}"
    if not plan.deterministic():
        return _CHANGING
    return _MOVING if _is_moving(jvm.org.apache.spark.sql.catalyst.optimizer, plan) else None


def _is_moving(optimizer: Any, plan: Any) -> bool:
    """Return whether Spark's optimizer replaces a literal of the plan by the current time.

    Source: Spark's rule `SpecialDatetimeValues`, called with the same plan as by the optimizer.
    """
    replaced = _rule(optimizer, "ReplaceExpressions").apply(plan)
    return not _rule(optimizer, "SpecialDatetimeValues").apply(replaced).fastEquals(replaced)


def _rule(optimizer: Any, name: str) -> Any:
    return getattr(getattr(optimizer, f"{name}$"), "MODULE$")


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield every node of a tree in Spark's JSON form, including nested trees."""
    if isinstance(tree, list):
        for child in tree:
            yield from _nodes(child)
    elif isinstance(tree, dict):
        if "class" in tree:
            yield tree
        for value in tree.values():
            yield from _nodes(value)


def expressions_of(
    source: DataFrame, mapping: Mapping[str, str], place: str, names: list[str], numbers: dict[str, list[str]]
) -> dict[str, Column]:
    """Return the contract's expressions by canonical column, after checking all of them.

    Raises:
        SourceError: if one is not valid.
    """
    for name, text in mapping.items():
        _require_backticks(text, f"{place}.{name}", names)
    try:
        expressions = {name: F.expr(exact(text, numbers)) for name, text in mapping.items()}
        source.select("*", *expressions.values())
    except NOT_ANALYSED:
        return {
            name: expression_of(source, text, f"{place}.{name}", names, numbers)
            for name, text in mapping.items()
        }
    return expressions


def expression_of(
    source: DataFrame, text: str, place: str, names: list[str], numbers: dict[str, list[str]]
) -> Column:
    """Return the contract's expression, after checking that it is valid over the source's columns.

    Raises:
        SourceError: if it is not.
    """
    try:
        expression = F.expr(exact(text, numbers))
        source.select("*", expression)
    except NOT_ANALYSED as error:
        shown = ", ".join(sorted(names)[:_SHOWN_COLUMNS])
        reason = reason_of(_error_as_written(source, text) or error, text)
        advice = _advice(text, place, names) or _advice_on_folders(source, text)
        raise SourceError(f"{place}: {reason}; the source's columns are: {shown}{advice}") from None
    return expression


def _require_backticks(text: str, place: str, names: Sequence[str]) -> None:
    """Refuse an unquoted column name that means something else in SQL: `order-id` is a difference.

    Raises:
        SourceError: if the whole expression is the name of a column that must be quoted.
    """
    name = text.strip()
    if name in names and _NO_WORD.search(name):
        raise SourceError(f"{place}: found {name}; {_IN_BACKTICKS.format(name)}")


def _advice(text: str, place: str, names: Sequence[str]) -> str:
    r"""Return advice for an expression that names no column: how to write a name, a text, or the separator.

    >>> _advice("order.id", "columns.message_id", ["order.id", "at"])
    '; the name of a column that is no word stands in backticks: `order.id`'
    >>> _advice("acked", "columns.outcome", ["id", "at"])
    '; the word itself is a text in quotes of its own: "\'acked\'"'
    >>> _advice("id", "columns.message_id", ["o-1", "2026-11-20T10:00:03Z"])
    '; these are values: the first line has to name the columns'
    """
    name = text.strip()
    if name in names or _FOREIGN_NAME.fullmatch(name):
        return f"; {_IN_BACKTICKS.format(name if name in names else 'order-id')}"
    if name.isalpha() and place.rpartition(".")[2] in _CONSTANT_COLUMNS:
        return f"; the word itself is a text in quotes of its own: \"'{name}'\""
    if any(map(_TIME_AS_NAME.match, names)):
        return "; these are values: the first line has to name the columns"
    return _cut_at(names)


def _advice_on_folders(source: DataFrame, text: str) -> str:
    """Return advice for a column that is only in folder names, as in Hive's and Spark's partitioned tables."""
    folders = "\n".join(source.inputFiles())
    found = next((path for path in paths_of(text) if f"/{path}=" in folders), None)
    return "" if found is None else f"; {_OF_FOLDERS.format(found)}"


def _cut_at(names: Sequence[str]) -> str:
    r"""Return the option that splits the single column of a CSV file, if its name contains a separator.

    >>> _cut_at(["id;at"]), _cut_at(["id\tat"]), _cut_at(["id"])
    ("; options: {sep: ';'} cuts it", '; options: {sep: "\\t"} cuts it', '')
    """
    separator = next((mark for mark in _SEPARATORS if mark in names[0]), None) if len(names) == 1 else None
    return "" if separator is None else f"; options: {{sep: {_SEPARATORS[separator]}}} cuts it"


def _error_as_written(source: DataFrame, text: str) -> PySparkException | Py4JJavaError | None:
    """Return the error of the original expression instead of the rewritten one, so that it quotes the contract."""
    try:
        source.select("*", F.expr(text))
    except NOT_ANALYSED as error:
        return error
    return None


def exact(text: str, numbers: dict[str, list[str]]) -> str:
    """Return the contract's expression rewritten so that numbers in JSON documents keep their original text."""
    path = text.strip()
    if is_path(path) and any(
        other_path.startswith(f"{path}.") for paths in numbers.values() for other_path in paths
    ):
        text = f"to_json({path})"
    return bounded_times(rewritten(exact_fields(text), numbers))


def numbers_in(source: DataFrame) -> dict[str, list[str]]:
    """Return the source's columns with numbers stored as texts, each with their paths."""
    paths_of_columns = {field.name: field.metadata.get(NUMBERS) for field in source.schema.fields}
    return {name: paths for name, paths in paths_of_columns.items() if paths}


def reason_of(error: PySparkException | Py4JJavaError, text: str) -> str:
    """Return the error of the expression in one line."""
    if isinstance(error, Py4JJavaError):
        return _java_reason(str(error.java_exception.toString()), text)
    return _reason_of_condition(error, text)


def _reason_of_condition(error: PySparkException, text: str) -> str:
    parameters, condition = error.getMessageParameters() or {}, error.getCondition() or ""
    if condition.startswith(("UNRESOLVED_COLUMN", "UNRESOLVED_ROUTINE")):
        parameter_names = ("column", "objectName") if "COLUMN" in condition else ("function", "routineName")
        return f"no {parameter_names[0]} {parameters.get(parameter_names[1], '')}".strip()
    if condition == "MISSING_GROUP_BY":
        return f"expected an expression over one row, found an aggregate: {_shown(text)}"
    if condition == "MISSING_AGGREGATION":
        return "it is no aggregate"
    if condition == "PARSE_SYNTAX_ERROR":
        return f"expected Spark SQL, found {_shown(text)}: {_reason(error)}"
    return _reason_of_text(error, condition, parameters)


def _reason_of_text(error: PySparkException, condition: str, parameters: Mapping[str, str]) -> str:
    """Return the error, with advice if an expression uses a text as a number or as an object."""
    if condition == "INVALID_EXTRACT_BASE_FIELD_TYPE" and parameters.get("other") == '"STRING"':
        return _WITHIN_TEXT.format(parameters.get("base", "").strip('"'))
    if parameters.get("inputType") == '"STRING"' and _OF_NUMBERS.search(parameters.get("requiredType", "")):
        return f"{_reason(error)}; cast the text first: cast(COLUMN as bigint)"
    return _reason(error)


def _java_reason(java_message: str, text: str) -> str:
    if _TOO_DEEP in java_message:
        return f"expected an expression that nests less deeply, found {_shown(text)}"
    return " ".join((java_message.partition(": ")[2] or java_message).splitlines()[0].split())


def _reason(error: PySparkException) -> str:
    return " ".join((error.getMessage() or str(error)).split("\n==")[0].split())


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_TEXT else f"{line[:_SHOWN_TEXT]}…"

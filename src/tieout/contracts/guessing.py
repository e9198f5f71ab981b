"""Guesses the meaning of an unknown source's columns from their names and first values.

Pure. A guess states its reason, and is made only if the values fit; uncertain columns are left out.
Docs: docs/how-to/write-a-contract-from-files.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tieout.model import POSITION_LEDGERS, Ledger

_SIMPLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WHOLE: Final = re.compile(r"-?\d{1,19}")
_UNIT: Final = re.compile(r"_(?:s|sec|seconds|ms|millis|us|micros|ns|nanos|ts|utc|time)$")
PLACE: Final = ("topic", "partition", "offset")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_UNITS: Final = (
    (10**8, 10**10, "seconds", "timestamp_seconds({})"),
    (10**11, 10**13, "milliseconds", "timestamp_millis({})"),
    (10**14, 10**16, "microseconds", "timestamp_micros({})"),
    (10**17, 10**19, "nanoseconds", "timestamp_micros({} div 1000)"),
)
"""Ranges of whole numbers (from, below) that are times of the years 1973 to 2286 in each unit."""
_DATE: Final = re.compile(r"\d{4}-?\d{2}-?\d{2}")
"""A date without a time, which cannot place a message in a window of hours."""
_CALENDAR: Final = re.compile(r"(?:19|20)[0-9]{12}(?:[0-9]{3})?")
"""Digits of a calendar time, to the second or the millisecond; as numbers they fall in no unit's range."""

_SOURCE_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "message_id": ("message_id", "msg_id", "event_id", "record_id", "uuid", "guid", "id"),
    "topic": ("topic", "kafka_topic", "topic_name"),
    "partition": ("partition", "kafka_partition", "partition_id", "topic_partition"),
    "offset": ("offset", "kafka_offset", "record_offset"),
    "attempted_at": (
        "attempted_at", "sent_at", "sent_ms", "sent_ts", "sent", "produced_at", "send_time", "published_at",
        "created_at", "event_time", "timestamp", "ts", "time", "source_timestamp",
    ),
    "completed_at": ("completed_at", "acked_at", "acknowledged_at", "ack_time", "ack_ms"),
    "processed_at": (
        "processed_at", "delivered_at", "loaded_at", "inserted_at", "written_at", "consumed_at", "received_at",
        "read_at", "ingested_at", "created_at", "updated_at", "timestamp", "ts", "time", "source_timestamp",
    ),
    "record_timestamp": ("record_timestamp", "timestamp", "ts", "time", "append_time"),
    "committed_at": ("committed_at", "commit_time", "commit_timestamp", "timestamp", "ts", "time"),
    "first_offset": ("first_offset", "from_offset"),
    "committed_offset": ("committed_offset", "current_offset", "until_offset", "offset"),
    "at": ("at", "filtered_at", "failed_at", "timestamp", "ts", "time", "source_timestamp"),
    "outcome": ("outcome", "status", "result", "state"),
    "producer_id": ("producer_id", "producer", "client_id"),
    "producer_session": ("producer_session", "session", "session_id"),
    "sequence": ("sequence", "seq", "sequence_number"),
    "consumer_group": ("consumer_group", "group_id", "group"),
    "consumer_id": ("consumer_id", "consumer", "member_id", "client_id"),
    "key_hash": ("key_hash", "key_sha256", "key_md5"),
    "payload_hash": (
        "payload_hash", "payload_sha256", "body_hash", "body_sha256", "value_hash", "value_sha256", "checksum",
        "digest", "sha256", "md5",
    ),
    "transaction_id": ("transaction_id", "txn_id"),
    "reason": ("reason", "error", "message"),
}  # fmt: skip
"""The names that sources use for each canonical column, the most certain first."""

_EXPECTED_COLUMNS: Final[Mapping[Ledger, tuple[str, ...]]] = {
    Ledger.PRODUCED: (
        "message_id", "attempted_at", "completed_at", "outcome", "topic", "partition", "offset", "producer_id",
        "producer_session", "sequence", "transaction_id", "key_hash", "payload_hash",
    ),
    Ledger.LOG: ("message_id", "topic", "partition", "offset", "record_timestamp", "key_hash", "payload_hash"),
    **dict.fromkeys(
        POSITION_LEDGERS,
        ("consumer_group", "topic", "partition", "first_offset", "committed_offset", "committed_at"),
    ),
}  # fmt: skip
_CONSUMED_COLUMNS: Final = (
    "message_id", "processed_at", "outcome", "topic", "partition", "offset", "consumer_group", "consumer_id",
    "key_hash", "payload_hash",
)  # fmt: skip
_EXCLUDED_COLUMNS: Final = ("message_id", "topic", "partition", "offset", "at", "reason")
_TIMES: Final = frozenset(
    {"attempted_at", "completed_at", "processed_at", "record_timestamp", "committed_at", "at"}
)
OPTIONAL: Final = frozenset({"first_offset"})
"""Columns that most sources lack and do not need."""
_ROW_TIMES: Final = _TIMES - {"completed_at"}
"""Columns that hold the time of a ledger's row."""

_SURROGATE_KEYS: Final = frozenset({"id", "uuid", "guid"})
"""Names that tables often give to a surrogate key of their own."""
_ID_SUFFIXES: Final = ("_id", "_uuid", "_guid", "_ref", "_reference", "_number", "_no")
"""Suffixes of columns that hold an id."""

_NUMBERS: Final = frozenset({"partition", "offset", "first_offset", "committed_offset", "sequence"})
_ACKED: Final = frozenset({"acked", "ack", "ok", "success", "succeeded", "delivered", "true", "committed"})
_FAILED: Final = frozenset({"failed", "fail", "error", "rejected", "false", "aborted"})
_UNKNOWN: Final = frozenset({"unknown", "timeout", "timed_out", "expired"})


@dataclass(frozen=True)
class ColumnSample:
    """One column of a source: its kind (text, integer, number, flag, time, other) and sampled values as text.

    `expression` is the column's Spark SQL, if that is not its name.
    """

    name: str
    kind: str
    values: tuple[str, ...]
    expression: str | None = None

    @property
    def sql(self) -> str:
        """The column in Spark SQL."""
        return self.expression or quoted(self.name)


POSITION_COLUMNS: Final = (
    "consumer_group",
    "topic",
    "partition",
    "first_offset",
    "committed_offset",
    "committed_at",
)
"""The canonical columns that the readers of positions provide."""


@dataclass(frozen=True)
class LedgerSample:
    """A sample of a source's rows: its `form`, path and columns.

    The form is a file format, `jdbc`, or `kafka` for any topic behind a connection, including Pulsar's.

    `separator` separates the columns of CSV; `warnings` name rows that the reader will reject. `kind` is that of the
    source, `options` are its other options, and `reader_columns` the canonical columns that its reader provides.
    """

    form: str
    path: str
    columns: tuple[ColumnSample, ...]
    rows: int
    separator: str = ","
    warnings: tuple[str, ...] = ()
    kind: str = "files"
    options: tuple[tuple[str, str | int], ...] = ()
    reader_columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Guess:
    """The probable Spark SQL of a canonical column, the reason, and the source's column."""

    expression: str
    reason: str
    source: str


def expected_columns(ledger: Ledger) -> tuple[str, ...]:
    """Return the canonical columns that are searched for in a source of the ledger, in the order of the draft."""
    if ledger in (Ledger.DELIVERED, Ledger.READ):
        return _CONSUMED_COLUMNS
    return _EXPECTED_COLUMNS.get(ledger, _EXCLUDED_COLUMNS)


def guessed(ledger: Ledger, sample: LedgerSample, samples: Mapping[Ledger, LedgerSample]) -> dict[str, Guess]:
    """Return a guess for each canonical column of the ledger; a source's column is used at most once.

    Args:
        ledger: The ledger that the source is for.
        sample: The source's sample.
        samples: All samples; an id is also recognized by values that `produced` has.
    """
    guesses: dict[str, Guess] = {}
    taken: set[str] = set()
    for canonical in (column for column in expected_columns(ledger) if column not in sample.reader_columns):
        guess = _guess(canonical, ledger, [column for column in sample.columns if column.name not in taken])
        if canonical == "message_id" and ledger is not Ledger.PRODUCED:
            if ambiguous_ids(ledger, sample, samples[Ledger.PRODUCED]):
                continue
            guess = _id_by_values(sample, samples[Ledger.PRODUCED], guess)
        if guess is None and canonical == "message_id":
            guess = _id_by_suffix(sample)
        if guess is None and canonical in _ROW_TIMES:
            guess = _only_time([column for column in sample.columns if column.name not in taken])
        if guess is not None:
            guesses[canonical] = guess
            taken.add(guess.source)
    return guesses


def _guess(canonical: str, ledger: Ledger, columns: Sequence[ColumnSample]) -> Guess | None:
    """Return a guess for the first column with one of the names whose values fit, or None."""
    by_name = {snake_case(column.name): column for column in reversed(columns)}
    if canonical in _TIMES:
        for column in columns:
            moment = _UNIT.sub("", snake_case(column.name))
            for name in (moment, f"{moment}_at"):
                by_name.setdefault(name, column)
    check = _value_check(canonical, ledger)
    for candidate in (by_name[name] for name in _SOURCE_NAMES[canonical] if name in by_name):
        match = check(candidate) if candidate.values else None
        if match is not None:
            expression, reason = match
            return Guess(expression, f"by its name{reason}", candidate.name)
    return None


def _value_check(canonical: str, ledger: Ledger) -> Callable[[ColumnSample], tuple[str, str] | None]:
    """Return the check of a column's values, which returns its Spark SQL and the reason, or None if they do not fit."""
    if canonical in _TIMES:
        return _as_time
    if canonical in _NUMBERS:
        return _as_whole
    if canonical == "outcome":
        return lambda column: _as_outcome(column, "acked" if ledger is Ledger.PRODUCED else "ok")
    return lambda column: None if column.kind in ("other", "time") else (column.sql, "")


def _as_time(column: ColumnSample) -> tuple[str, str] | None:
    """Return the Spark SQL of a time column and the reason: by its type, as numbers of a unit, or as ISO 8601.

    >>> _as_time(ColumnSample("sent_ms", "integer", ("1763632800000",)))
    ('timestamp_millis(sent_ms)', '; whole numbers that are milliseconds since 1970')
    """
    name = column.sql
    if column.values and all(_DATE.fullmatch(value) for value in column.values):
        return None
    if column.kind == "time":
        return name, "; times in the source"
    if all(_WHOLE.fullmatch(value) for value in column.values):
        return _as_calendar(column) or _as_units(column)
    try:
        times = [datetime.fromisoformat(value) for value in column.values]
    except ValueError:
        return None
    if column.kind != "text":
        return None
    zoned = sum(time.tzinfo is not None for time in times)
    zone = "with their zone" if zoned == len(times) else "WITHOUT A ZONE in some rows: these are taken as UTC"
    return name if zoned == len(times) else f"to_timestamp({name})", f"; ISO 8601, {zone}"


def _as_units(column: ColumnSample) -> tuple[str, str] | None:
    """Return the Spark SQL that makes times of whole numbers of one unit, None if they fit several or none."""
    units = {unit for unit in _UNITS if all(unit[0] <= int(value) < unit[1] for value in column.values)}
    if not units:
        return None
    ((_, _, unit, form_of),) = units
    number = column.sql if column.kind == "integer" else f"cast({column.sql} as bigint)"
    return form_of.format(number), f"; whole numbers that are {unit} since 1970"


def _as_calendar(column: ColumnSample) -> tuple[str, str] | None:
    """Return the Spark SQL that makes times of digits such as `20261120100001`, None for other values.

    >>> _as_calendar(ColumnSample("sent_at", "text", ("20261120100001",)))[0]
    "to_timestamp(sent_at, 'yyyyMMddHHmmss')"
    """
    lengths = {len(value) for value in column.values}
    if len(lengths) != 1 or not all(_CALENDAR.fullmatch(value) for value in column.values):
        return None
    try:
        for value in column.values:
            datetime.strptime(value[:14], "%Y%m%d%H%M%S")  # noqa: DTZ007 - whether it is a time is all that is asked
    except ValueError:
        return None
    form = "yyyyMMddHHmmss" + "SSS" * (lengths == {17})
    text = column.sql if column.kind == "text" else f"cast({column.sql} as string)"
    return (
        f"to_timestamp({text}, '{form}')",
        "; digits of a calendar time WITHOUT A ZONE: these are taken as UTC",
    )


def _as_whole(column: ColumnSample) -> tuple[str, str] | None:
    is_whole = all(_WHOLE.fullmatch(value) and int(value) >= -1 for value in column.values)
    return (column.sql, "; whole numbers") if is_whole else None


def _as_outcome(column: ColumnSample, good: str) -> tuple[str, str] | None:
    """Return the Spark SQL of the canonical outcome; an unrecognized value is `unknown`, which claims the least."""
    values = sorted({value.lower() for value in column.values})
    known = set(values) & (_ACKED | _FAILED | _UNKNOWN)
    if not known or len(values) > 12:
        return None
    branches = [
        f"when lower({column.sql}) in ({', '.join(_sql(value) for value in sorted(matching))}) then '{outcome}'"
        for matching, outcome in ((set(values) & _ACKED, good), (set(values) & _FAILED, "failed"))
        if matching
    ]
    if column.kind == "flag":
        branches = [
            branch.replace("lower(", "lower(cast(").replace(") in", " as string)) in") for branch in branches
        ]
    unrecognized = sorted(set(values) - _ACKED - _FAILED)
    reason = f"; values found: {', '.join(values)}"
    if unrecognized:
        reason += f"; {', '.join(unrecognized)} taken as unknown"
    return f"case {' '.join(branches)} else 'unknown' end" if branches else "'unknown'", reason


def ambiguous_ids(ledger: Ledger, sample: LedgerSample, produced: LedgerSample) -> tuple[str, ...]:
    """Return the columns that may all be the message's id, if neither names nor values decide; usually none.

    An output often has a serial key `id` besides the message's id, and whole numbers coincide by chance.
    """
    produced_id, by_name = _produced_id(produced), _guess("message_id", ledger, sample.columns)
    if produced_id is None or by_name is None or _is_certain_id(by_name, produced_id):
        return ()
    ids = _values_of(produced, produced_id.source)
    if not all(_WHOLE.fullmatch(value) for value in (*ids, *_values_of(sample, by_name.source))):
        return ()
    shares = _shares(sample, ids)
    rivals = [name for name, share in shares.items() if share and share >= shares.get(by_name.source, 0)]
    return tuple(sorted({by_name.source, *rivals})) if set(rivals) - {by_name.source} else ()


def _produced_id(produced: LedgerSample) -> Guess | None:
    """Return the guess for the message id in `produced`."""
    return _guess("message_id", Ledger.PRODUCED, produced.columns) or _id_by_suffix(produced)


def _is_certain_id(guess: Guess, produced_id: Guess) -> bool:
    """Return whether a name proves a message id: `message_id`, or the name in `produced` if it is not generic."""
    name = snake_case(guess.source)
    return name == "message_id" or (name == snake_case(produced_id.source) and name not in _SURROGATE_KEYS)


def _values_of(sample: LedgerSample, name: str) -> set[str]:
    return {value for column in sample.columns if column.name == name for value in column.values}


def _shares(sample: LedgerSample, ids: set[str]) -> dict[str, float]:
    """Return for each column that may be an id the share of its values that are among the ids.

    Whole numbers coincide by chance, so a column of numbers must also have an id's name.
    """
    other_names = {
        name for canonical, names in _SOURCE_NAMES.items() if canonical != "message_id" for name in names
    }
    return {
        column.name: len(ids & set(column.values)) / max(1, len(set(column.values)))
        for column in sample.columns
        if snake_case(column.name) not in other_names
        and (column.kind == "text" or snake_case(column.name).endswith(("id", *_SOURCE_NAMES["message_id"])))
    }


def _id_by_values(sample: LedgerSample, produced: LedgerSample, by_name: Guess | None) -> Guess | None:
    """Return the column that shares the most values with the ids in `produced`; else the one guessed by name."""
    produced_id = _produced_id(produced)
    if produced_id is None or (by_name is not None and _is_certain_id(by_name, produced_id)):
        return by_name
    if by_name is None and (same_name := _same_name_column(produced_id, sample)) is not None:
        return same_name
    ids = _values_of(produced, produced_id.source)
    shares = _shares(sample, ids)
    best = max(shares, key=lambda name: len(ids & _values_of(sample, name)), default=None)
    if (
        best is None
        or not shares[best]
        or (by_name is not None and shares[best] <= shares.get(by_name.source, 0))
    ):
        return by_name
    (expression,) = (column.sql for column in sample.columns if column.name == best)
    count = len(ids & _values_of(sample, best))
    return Guess(expression, f"{count} of its sampled values stand in produced.{produced_id.source}", best)


def _same_name_column(produced_id: Guess, sample: LedgerSample) -> Guess | None:
    """Return the column with the same name as the id in `produced`, if that name is not generic such as `id`."""
    name = snake_case(produced_id.source)
    matching = [column for column in sample.columns if snake_case(column.name) == name and column.values]
    if len(matching) != 1 or name in _SURROGATE_KEYS or matching[0].kind in ("other", "time"):
        return None
    return Guess(matching[0].sql, f"called as produced.{produced_id.source}", matching[0].name)


def _id_by_suffix(sample: LedgerSample) -> Guess | None:
    """Return the only column with an id's suffix whose sampled values are all different."""
    candidates = [
        column
        for column in sample.columns
        if snake_case(column.name).endswith(_ID_SUFFIXES)
        and column.values
        and len(set(column.values)) == len(column.values) == sample.rows
    ]
    if len(candidates) != 1:
        return None
    (suffix,) = (suffix for suffix in _ID_SUFFIXES if snake_case(candidates[0].name).endswith(suffix))
    return Guess(
        candidates[0].sql, f"the only …{suffix} whose sampled values are all different", candidates[0].name
    )


def _only_time(columns: Sequence[ColumnSample]) -> Guess | None:
    """Return the only column whose values are times, or None if there are none or several."""
    time_columns = [
        (column, sql_and_reason)
        for column in columns
        if column.values and (sql_and_reason := _as_time(column)) is not None
    ]
    if len(time_columns) != 1:
        return None
    ((column, (expression, reason)),) = time_columns
    return Guess(expression, f"the only column of times{reason}", column.name)


def snake_case(name: str) -> str:
    """Return a column's name in snake case.

    >>> snake_case("messageId"), snake_case("Sent-At")
    ('message_id', 'sent_at')
    """
    return re.sub(r"[^a-z0-9]+", "_", _CAMEL.sub("_", name).lower()).strip("_")


def quoted(name: str) -> str:
    """Return a column's name in Spark SQL.

    >>> quoted("id"), quoted("order id")
    ('id', '`order id`')
    """
    return name if _SIMPLE.fullmatch(name) else f"`{name.replace('`', '``')}`"


def _sql(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

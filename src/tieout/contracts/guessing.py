"""What the columns of an unknown source probably are, by their names and their first values together.

Pure. A guess names its reason, and is made only where the values fit; what is not sure is left out.
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
"""Whole numbers from, below, and what times of the years 1973 to 2286 they would be."""
_DATE: Final = re.compile(r"\d{4}-?\d{2}-?\d{2}")
"""A day without its time, by which no message is put into a window of hours."""
_CALENDAR: Final = re.compile(r"(?:19|20)[0-9]{12}(?:[0-9]{3})?")
"""Digits of a calendar time, to the second or the millisecond; as numbers they are of none of the units."""

_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
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
"""Per canonical column what sources call it, the surest first."""

_WANTED: Final[Mapping[Ledger, tuple[str, ...]]] = {
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
_CONSUMED: Final = (
    "message_id", "processed_at", "outcome", "topic", "partition", "offset", "consumer_group", "consumer_id",
    "key_hash", "payload_hash",
)  # fmt: skip
_ASIDE: Final = ("message_id", "topic", "partition", "offset", "at", "reason")
_TIMES: Final = frozenset(
    {"attempted_at", "completed_at", "processed_at", "record_timestamp", "committed_at", "at"}
)
OPTIONAL: Final = frozenset({"first_offset"})
"""Columns that most sources lack, and need not have."""
_MOMENTS: Final = _TIMES - {"completed_at"}
"""The time that a row of a ledger is of."""

_OWN_KEYS: Final = frozenset({"id", "uuid", "guid"})
"""Names under which a table often has a key of its own."""
_ENDINGS: Final = ("_id", "_uuid", "_guid", "_ref", "_reference", "_number", "_no")
"""How columns that name something end."""

_NUMBERS: Final = frozenset({"partition", "offset", "first_offset", "committed_offset", "sequence"})
_ACKED: Final = frozenset({"acked", "ack", "ok", "success", "succeeded", "delivered", "true", "committed"})
_FAILED: Final = frozenset({"failed", "fail", "error", "rejected", "false", "aborted"})
_UNKNOWN: Final = frozenset({"unknown", "timeout", "timed_out", "expired"})


@dataclass(frozen=True)
class ColumnSample:
    """One column of a source: its kind (text, integer, number, flag, time, other) and sampled values as text.

    `expression` is how the contract gets at it, where that is not by its name.
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
"""What the readers of positions give by themselves."""


@dataclass(frozen=True)
class LedgerSample:
    """Some rows of a source: its `form`, where it is, and its columns.

    The form is a file's, `jdbc`, or `kafka` for any topic behind a connection, Pulsar's too.

    `separator` is what parts the columns of CSV; `warnings` say what the reader will not take. `kind` is that of the
    source, `options` are its further ones, and `gives` the canonical columns that its reader gives by itself.
    """

    form: str
    path: str
    columns: tuple[ColumnSample, ...]
    rows: int
    separator: str = ","
    warnings: tuple[str, ...] = ()
    kind: str = "files"
    options: tuple[tuple[str, str | int], ...] = ()
    gives: tuple[str, ...] = ()


@dataclass(frozen=True)
class Guess:
    """What a canonical column probably is: Spark SQL, and why."""

    expression: str
    why: str
    source: str


def wanted_columns(ledger: Ledger) -> tuple[str, ...]:
    """Return the canonical columns that are looked for in a source of the ledger, in the order they are written."""
    if ledger in (Ledger.DELIVERED, Ledger.READ):
        return _CONSUMED
    return _WANTED.get(ledger, _ASIDE)


def guessed(ledger: Ledger, found: LedgerSample, samples: Mapping[Ledger, LedgerSample]) -> dict[str, Guess]:
    """Return what each canonical column of the ledger probably is; a source's column stands for one at most.

    Args:
        ledger: Which ledger the source is to be.
        found: What it holds.
        samples: All sources; an id is also known by values that `produced` has.
    """
    guesses: dict[str, Guess] = {}
    taken: set[str] = set()
    for wanted in (one for one in wanted_columns(ledger) if one not in found.gives):
        guess = _guess(wanted, ledger, [one for one in found.columns if one.name not in taken])
        if wanted == "message_id" and ledger is not Ledger.PRODUCED:
            if rivals_of_id(ledger, found, samples[Ledger.PRODUCED]):
                continue
            guess = _id_by_values(found, samples[Ledger.PRODUCED], guess)
        if guess is None and wanted == "message_id":
            guess = _id_by_ending(found)
        if guess is None and wanted in _MOMENTS:
            guess = _only_time([one for one in found.columns if one.name not in taken])
        if guess is not None:
            guesses[wanted] = guess
            taken.add(guess.source)
    return guesses


def _guess(wanted: str, ledger: Ledger, columns: Sequence[ColumnSample]) -> Guess | None:
    """Return the first column that is called so and whose values fit, or None."""
    by_name = {plain_name(column.name): column for column in reversed(columns)}
    if wanted in _TIMES:
        for column in columns:
            moment = _UNIT.sub("", plain_name(column.name))
            for name in (moment, f"{moment}_at"):
                by_name.setdefault(name, column)
    judge = _judge(wanted, ledger)
    for known in (by_name[name] for name in _NAMES[wanted] if name in by_name):
        found = judge(known) if known.values else None
        if found is not None:
            expression, why = found
            return Guess(expression, f"by its name{why}", known.name)
    return None


def _judge(wanted: str, ledger: Ledger) -> Callable[[ColumnSample], tuple[str, str] | None]:
    """Return what tells whether a column's values fit: its Spark SQL and the reason, or None."""
    if wanted in _TIMES:
        return _as_time
    if wanted in _NUMBERS:
        return _as_whole
    if wanted == "outcome":
        return lambda column: _as_outcome(column, "acked" if ledger is Ledger.PRODUCED else "ok")
    return lambda column: None if column.kind in ("other", "time") else (column.sql, "")


def _as_time(column: ColumnSample) -> tuple[str, str] | None:
    """Return how a column becomes a time: by its type, as whole numbers of a unit, or as ISO 8601.

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
    """Return how whole numbers of one unit become a time, None where they are of several or of none."""
    found = {unit for unit in _UNITS if all(unit[0] <= int(value) < unit[1] for value in column.values)}
    if not found:
        return None
    ((_, _, unit, form_of),) = found
    number = column.sql if column.kind == "integer" else f"cast({column.sql} as bigint)"
    return form_of.format(number), f"; whole numbers that are {unit} since 1970"


def _as_calendar(column: ColumnSample) -> tuple[str, str] | None:
    """Return how a column of digits such as `20261120100001` becomes a time, None where it holds others.

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
    """Return the outcome in our words; a value that is not known here is `unknown`, which claims the least."""
    values = sorted({value.lower() for value in column.values})
    known = set(values) & (_ACKED | _FAILED | _UNKNOWN)
    if not known or len(values) > 12:
        return None
    whens = [
        f"when lower({column.sql}) in ({', '.join(_sql(value) for value in sorted(chosen))}) then '{word}'"
        for chosen, word in ((set(values) & _ACKED, good), (set(values) & _FAILED, "failed"))
        if chosen
    ]
    if column.kind == "flag":
        whens = [when.replace("lower(", "lower(cast(").replace(") in", " as string)) in") for when in whens]
    others = sorted(set(values) - _ACKED - _FAILED)
    why = f"; values found: {', '.join(values)}"
    if others:
        why += f"; {', '.join(others)} taken as unknown"
    return f"case {' '.join(whens)} else 'unknown' end" if whens else "'unknown'", why


def rivals_of_id(ledger: Ledger, found: LedgerSample, produced: LedgerSample) -> tuple[str, ...]:
    """Return the columns of which one is the message's id, where neither names nor values tell which; mostly none.

    An output often has a serial key `id` of its own beside the message's, and whole numbers are alike by chance.
    """
    sent, named = _sent_id(produced), _guess("message_id", ledger, found.columns)
    if sent is None or named is None or _is_surely(named, sent):
        return ()
    ids = _values_of(produced, sent.source)
    if not all(_WHOLE.fullmatch(value) for value in (*ids, *_values_of(found, named.source))):
        return ()
    shares = _shares(found, ids)
    rivals = [name for name, share in shares.items() if share and share >= shares.get(named.source, 0)]
    return tuple(sorted({named.source, *rivals})) if set(rivals) - {named.source} else ()


def _sent_id(produced: LedgerSample) -> Guess | None:
    """Return what names the messages in `produced`."""
    return _guess("message_id", Ledger.PRODUCED, produced.columns) or _id_by_ending(produced)


def _is_surely(named: Guess, sent: Guess) -> bool:
    """Return whether a name says whose id it is: the canonical one, or the one that `produced` has, if it says more."""
    name = plain_name(named.source)
    return name == "message_id" or (name == plain_name(sent.source) and name not in _OWN_KEYS)


def _values_of(found: LedgerSample, name: str) -> set[str]:
    return {value for column in found.columns if column.name == name for value in column.values}


def _shares(found: LedgerSample, ids: set[str]) -> dict[str, float]:
    """Return of each column that may be an id which share of its values are among the ids.

    Whole numbers are alike by chance, so a column of numbers must be called an id, too.
    """
    others = {name for wanted, names in _NAMES.items() if wanted != "message_id" for name in names}
    return {
        column.name: len(ids & set(column.values)) / max(1, len(set(column.values)))
        for column in found.columns
        if plain_name(column.name) not in others
        and (column.kind == "text" or plain_name(column.name).endswith(("id", *_NAMES["message_id"])))
    }


def _id_by_values(found: LedgerSample, produced: LedgerSample, named: Guess | None) -> Guess | None:
    """Return the column with most values among what names the messages in `produced`; else the one by its name."""
    sent = _sent_id(produced)
    if sent is None or (named is not None and _is_surely(named, sent)):
        return named
    if named is None and (alike := _called_as(sent, found)) is not None:
        return alike
    ids = _values_of(produced, sent.source)
    shares = _shares(found, ids)
    best = max(shares, key=lambda name: len(ids & _values_of(found, name)), default=None)
    if (
        best is None
        or not shares[best]
        or (named is not None and shares[best] <= shares.get(named.source, 0))
    ):
        return named
    (expression,) = (column.sql for column in found.columns if column.name == best)
    count = len(ids & _values_of(found, best))
    return Guess(expression, f"{count} of its sampled values stand in produced.{sent.source}", best)


def _called_as(sent: Guess, found: LedgerSample) -> Guess | None:
    """Return the column that is called as what names the messages in `produced`, if the name says more than `id`."""
    name = plain_name(sent.source)
    alike = [one for one in found.columns if plain_name(one.name) == name and one.values]
    if len(alike) != 1 or name in _OWN_KEYS or alike[0].kind in ("other", "time"):
        return None
    return Guess(alike[0].sql, f"called as produced.{sent.source}", alike[0].name)


def _id_by_ending(found: LedgerSample) -> Guess | None:
    """Return the only column that is called as names are and whose sampled values are all different."""
    named = [
        column
        for column in found.columns
        if plain_name(column.name).endswith(_ENDINGS)
        and column.values
        and len(set(column.values)) == len(column.values) == found.rows
    ]
    if len(named) != 1:
        return None
    (ending,) = (ending for ending in _ENDINGS if plain_name(named[0].name).endswith(ending))
    return Guess(named[0].sql, f"the only …{ending} whose sampled values are all different", named[0].name)


def _only_time(columns: Sequence[ColumnSample]) -> Guess | None:
    """Return the only column whose values are times, if there is one alone."""
    found = [(column, told) for column in columns if column.values and (told := _as_time(column)) is not None]
    if len(found) != 1:
        return None
    ((column, (expression, why)),) = found
    return Guess(expression, f"the only column of times{why}", column.name)


def plain_name(name: str) -> str:
    """Return a column's name in snake case.

    >>> plain_name("messageId"), plain_name("Sent-At")
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

"""Fingerprints: one scan of each side, which adds up hashes per bucket of positions.

A bucket is a short run of offsets of one topic partition: 128 by default. Its fingerprint is the number of its rows and
the sums of two independent 64-bit hashes. Each hash covers everything that both ledgers have of a message: id,
position, contents, and which of them are null. Where both sides have the same messages, their fingerprints are equal.
Hashes are added and not combined by XOR, under which two equal rows would cancel each other. They are added as 32-bit
halves, because sums of whole ones overflow, which ANSI mode refuses. A bucket's positions are kept exactly, one bit
each, so a position that occurs twice is seen whatever the hashes say.

Two sides that differ in a bucket agree in all four sums with a probability of about 2^-128, if xxHash64 under two seeds
is as good as random; over a billion buckets that is less than 10^-28. `match: full` does without prematch.
Docs: docs/explanation/prematch.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.contracts import Contract
from tieout.engine.keys import POSITION
from tieout.engine.ledger import is_lacking_contents
from tieout.engine.sources.source import FAULT
from tieout.model import Identity, Ledger, Window

COMPARED: Final = (
    "message_id", "topic", "partition", "offset", "payload_hash", "key_hash", "header_hash", "record_timestamp",
)  # fmt: skip
"""The columns that are compared, as far as both sources have them."""
BUCKET: Final = ("topic", "partition", "bucket")
SUMS: Final = ("first_low", "first_high", "second_low", "second_high")
PAIRS: Final = {
    "": (Ledger.PRODUCED, Ledger.DELIVERED),
    "log_": (Ledger.PRODUCED, Ledger.LOG),
    "read_": (Ledger.LOG, Ledger.DELIVERED),
}
"""The pairs of ledgers that are compared, by the prefix of their hashes' names."""
Shared: TypeAlias = Mapping[str, tuple[str, ...]]
"""The columns of a message that both ledgers of a pair have, by the pair's prefix."""
HASHES: Final = ("first", "second")
_BITS_OF_PART: Final = 2
PARTS: Final = 1 << _BITS_OF_PART
"""Times are compared in this many parts of a bucket separately."""
_BITS_OF_WORD: Final = 6
_ID_BITS: Final = 64
_LOW_HALF: Final = 0xFFFFFFFF
_SECOND_SEED: Final = 0x5EED
_DAY_MILLIS: Final = 86_400_000
_SAMPLE_TIME_BITS: Final = 36


@dataclass(frozen=True)
class Widths:
    """How wide buckets and id hashes are: a bucket has 2^`bucket_bits` offsets, an id hash `id_bits` bits.

    Results do not depend on either; the tests make them narrow.
    """

    bucket_bits: int = 7
    id_bits: int = 64


STANDARD: Final = Widths()


@dataclass(frozen=True)
class LedgerRows:
    """One ledger as prematch reads it: conformed rows, which of their columns its source has, and counts.

    `counted` are further aggregates that the same scan computes, by name.
    """

    rows: DataFrame
    present: frozenset[str]
    counted: Mapping[str, Column]


def compared_columns(present: Mapping[Ledger, frozenset[str]]) -> Shared:
    """Return per pair of `PAIRS` the columns that both sources have and whose values must not change on the way.

    Columns that `produced` has are compared with `produced`. `log` and `delivered` are compared on the columns that it
    lacks.
    """
    columns: dict[str, tuple[str, ...]] = {}
    for prefix, (one, other) in PAIRS.items():
        if {one, other} <= set(present):
            known = present[Ledger.PRODUCED] if Ledger.PRODUCED not in (one, other) else frozenset()
            shared = present[one] & present[other] - known
            columns[prefix] = tuple(name for name in COMPARED if name in shared)
    return columns


def is_plain_attempt(contract: Contract, present: frozenset[str]) -> Column:
    """Return whether a send is acknowledged, in no transaction or a committed one, and has a position.

    If its source has no positions at all, no row needs one.
    """
    return _sure(
        (F.col("outcome") == "acked")
        & _is_named(contract)
        & _is_placed(present)
        & _is_committed(present)
        & F.col("attempted_at").isNotNull()
        & (F.col("intended_partition").isNull() | (F.col("intended_partition") == F.col("partition")))
    )


def is_plain_effect(present: frozenset[str]) -> Column:
    """Return whether an output row is a certain effect with a time and, as above, a position."""
    is_ok = F.coalesce(F.col("outcome"), F.lit("ok")) == "ok"
    return _sure(is_ok & _is_placed(present) & _is_committed(present) & F.col("processed_at").isNotNull())


def is_plain_record(contract: Contract) -> Column:
    """Return whether a log row is the record of a message, with a time and in no transaction."""
    is_data = ~F.coalesce("is_control", F.lit(False))
    in_none = F.coalesce(F.lower("transaction_state"), F.lit("none")) == "none"
    return _sure(
        _is_named(contract) & _is_placed(POSITION) & is_data & in_none & F.col("record_timestamp").isNotNull()
    )


def done_at() -> Column:
    """Return the time from which a send's deadline runs."""
    return F.coalesce("completed_at", "attempted_at")


def buckets_of(
    side: LedgerRows,
    ledger: Ledger,
    contract: Contract,
    window: Window,
    compared: Shared,
    widths: Widths,
) -> DataFrame:
    """Return per bucket of the side one row with the sums of its plain rows, and one that counts all others.

    | topic | partition | bucket | rows | first_low … | words   | last | earliest … | inside | micros | sample | rough |
    |-------|-----------|--------|------|-------------|---------|------|------------|--------|--------|--------|-------|
    | a     | 0         | 7     | 128  | …           | [-1, -1] | 1023 | 10:00:01  | 128    | …      | …      | 0     |

    `last` is the highest offset; `earliest` and `latest` are of `done_at` or `processed_at`. For each of the bucket's
    `PARTS`, `began_…` is the latest `attempted_at` and `seen_…` the earliest `processed_at`. `inside` counts rows of
    the window, `micros` adds up their times since its start, and `sample` is the time of the message with the lowest
    hash. Each pair that the ledger belongs to has its sums. Rows of other groups are left out; rows that could not be
    read are in `counted` alone.
    """
    known = hashed(side, ledger, contract, compared).withColumn("bucket", bucket_of(widths))
    micros = F.unix_micros("time") - F.lit(_micros(window))
    facts = {
        "rows": F.count("*"),
        **_sums(hashes_of(compared, ledger)),
        "last": F.max("offset"),
        "earliest": F.min("time"),
        "latest": F.max("time"),
        **_bounds(ledger, widths),
        "inside": F.count_if(
            (F.col("own_time") >= F.lit(window.start)) & (F.col("own_time") < F.lit(window.end))
        ),
        "micros": F.try_sum(micros),
        "sample": F.min(_sampled(window, hashes_of(compared, ledger)[0])),
        **_words(widths),
    }
    return known.groupBy(*BUCKET, "is_plain").agg(
        *[fact.alias(name) for name, fact in facts.items()],
        F.count_if("is_rough").alias("rough"),
        *[column.alias(f"counted_{name}") for name, column in side.counted.items()],
    )


def _bounds(ledger: Ledger, widths: Widths) -> dict[str, Column]:
    """Return the latest send, or the earliest effect, of each part of a bucket.

    These show whether an effect comes before its send by more than clocks may differ. The shorter the part, the rarer
    do two messages of different moments look like that.
    """
    if ledger is Ledger.LOG:
        return {}
    name, most = ("began", F.max) if ledger is Ledger.PRODUCED else ("seen", F.min)
    width = max(widths.bucket_bits - _BITS_OF_PART, 0)
    place = F.shiftright("offset", width).bitwiseAND(PARTS - 1)
    return {f"{name}_{part}": most(F.when(place == part, F.col("own_time"))) for part in range(PARTS)}


def hashed(side: LedgerRows, ledger: Ledger, contract: Contract, compared: Shared) -> DataFrame:
    """Return a ledger's rows with their hashes, `time`, `own_time`, `is_plain` and `is_rough`.

    Each pair that the ledger belongs to has two hashes, named by `hashes_of`. For a send, `time` is that of its
    acknowledgement and `own_time` that of the attempt; for an effect both are its own; in the log both are null. Rows
    of other groups, unreadable rows, and rows that only state a log's bounds are neither plain nor rough.
    """
    rows = side.rows
    is_ours, plain, time, own_time = _conditions_and_times(side, ledger, contract)
    if "content" in side.present:
        # A content that the file has no column for is unverifiable, even if the other side has null.
        plain &= ~is_lacking_contents()
    is_judged = F.col(FAULT).isNull() & is_ours if FAULT in rows.columns else is_ours
    hashes = {
        f"{prefix}{name}": value
        for prefix, columns in compared.items()
        if ledger in PAIRS[prefix]
        for name, value in zip(HASHES, _hashes(columns), strict=True)
    }
    return rows.select(
        "*",
        *[value.alias(name) for name, value in hashes.items()],
        time.alias("time"),
        own_time.alias("own_time"),
        (is_judged & plain).alias("is_plain"),
        (is_judged & ~plain).alias("is_rough"),
    )


def hashes_of(compared: Shared, ledger: Ledger | None = None) -> list[str]:
    """Return the names of the hashes of all pairs, or of those that the ledger belongs to."""
    return [
        f"{prefix}{name}"
        for prefix in compared
        if ledger is None or ledger in PAIRS[prefix]
        for name in HASHES
    ]


def _conditions_and_times(
    side: LedgerRows, ledger: Ledger, contract: Contract
) -> tuple[Column, Column, Column, Column]:
    """Return whether a ledger's rows count, whether they are plain, and the `time` and `own_time` of `hashed`."""
    if ledger is Ledger.PRODUCED:
        return F.lit(True), is_plain_attempt(contract, side.present), done_at(), F.col("attempted_at")
    if ledger is Ledger.DELIVERED:
        return _is_ours(contract), is_plain_effect(side.present), *(F.col("processed_at"),) * 2
    return F.col("offset").isNotNull(), is_plain_record(contract), *(F.lit(None).cast("timestamp"),) * 2


def bucket_of(widths: Widths) -> Column:
    """Return the number of the bucket of a row's `offset`."""
    return F.shiftright("offset", widths.bucket_bits)


def id_hash(widths: Widths) -> Column:
    """Return the hash of a row's `message_id`, cut to `id_bits` bits."""
    whole = F.xxhash64("message_id")
    return whole if widths.id_bits == _ID_BITS else F.shiftrightunsigned(whole, _ID_BITS - widths.id_bits)


def _sums(hashes: Sequence[str]) -> dict[str, Column]:
    """Return the sums of the hashes' halves; their names end as `SUMS` do."""
    return {
        f"{name}_{half}": F.sum(value)
        for name in hashes
        for half, value in (
            ("low", F.col(name).bitwiseAND(_LOW_HALF)),
            ("high", F.shiftrightunsigned(name, 32)),
        )
    }


def _sure(condition: Column) -> Column:
    return F.coalesce(condition, F.lit(False))


def _is_named(contract: Contract) -> Column:
    """Return whether a row has the id of its message; always so where the identity is the position."""
    return F.lit(True) if contract.identity == Identity.POSITION else F.col("message_id").isNotNull()


def _is_placed(present: Collection[str]) -> Column:
    if not set(POSITION) <= set(present):
        return F.lit(True)
    return F.col("topic").isNotNull() & F.col("partition").isNotNull() & (F.col("offset") >= 0)


def _is_committed(present: frozenset[str]) -> Column:
    """Return whether a row belongs to no transaction, or says that its transaction was committed.

    Other rows may contradict it: if a message of a transaction is not clean, `remainder.py` leaves all of it to the
    rules.
    """
    if "transaction_state" not in present:
        return F.lit(True)
    state = F.coalesce(F.col("transaction_state"), F.lit("none"))
    return (state == "committed") | ((state == "none") & F.col("transaction_id").isNull())


def _is_ours(contract: Contract) -> Column:
    return F.col("consumer_group").isNull() | (F.col("consumer_group") == contract.group)


def _hashes(compared: tuple[str, ...]) -> tuple[Column, Column]:
    """Return two hashes of a row under different seeds.

    Spark's xxhash64 takes each column's hash as the seed of the next and includes a text's length, so ('a', 'bc')
    differs from ('ab', 'c'). It skips nulls, so a number that says which columns are null is hashed first.
    """
    marks = F.lit(0)
    for place, name in enumerate(compared):
        marks = marks + F.when(F.col(name).isNull(), F.lit(1 << place)).otherwise(F.lit(0))
    return F.xxhash64(marks, *compared), F.xxhash64(F.lit(_SECOND_SEED), marks, *compared)


def _words(widths: Widths) -> dict[str, Column]:
    """Return the bucket's positions as bits of 64-bit words, exactly."""
    bit = F.expr("shiftleft(1L, cast(offset & 63 as int))")
    if widths.bucket_bits <= _BITS_OF_WORD:
        return {"word_0": F.bit_or(bit)}
    count = 1 << (widths.bucket_bits - _BITS_OF_WORD)
    number = F.shiftright("offset", _BITS_OF_WORD).bitwiseAND(count - 1)
    nothing = F.lit(0).cast("bigint")
    return {
        f"word_{place}": F.bit_or(F.when(number == place, bit).otherwise(nothing)) for place in range(count)
    }


def _micros(window: Window) -> int:
    return int(window.start.timestamp()) * 1_000_000 + window.start.microsecond


def _sampled(window: Window, hash_name: str) -> Column:
    """Return a row's hash with its time in milliseconds as low bits: the lowest value has the time of one message."""
    base = _micros(window) // 1000 - 365 * _DAY_MILLIS
    limit = (1 << _SAMPLE_TIME_BITS) - 1
    millis = F.greatest(F.lit(0), F.least(F.lit(limit), F.unix_millis("time") - F.lit(base)))
    hash_bits = F.shiftleft(F.shiftrightunsigned(hash_name, _SAMPLE_TIME_BITS + 1), _SAMPLE_TIME_BITS)
    return hash_bits.bitwiseOR(millis)


def sampled_millis(sample: Column) -> Column:
    """Return the time in a sample, in milliseconds since a moment that is the same on both sides."""
    return sample.bitwiseAND((1 << _SAMPLE_TIME_BITS) - 1)

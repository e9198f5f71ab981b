"""What is asked beside the fingerprints before a window is settled, and what quiet messages add up to.

In a window whose every message was sent once and delivered once, a row of either side is a message: rules about order
and commits are put to the rows themselves. Docs: docs/explanation/two-levels.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tieout.engine.balance import balance_of, quiet_positions, ranges_of
from tieout.engine.classes.reordered import reorder_consumer, reorder_output, reorder_producer, shows_turns
from tieout.engine.classes.standing import commit_out_of_range, commit_regression
from tieout.engine.classes.stretches import commit_stale
from tieout.engine.comparing import SIDES, Compared
from tieout.engine.fingerprint import Widths, bucket_of, sampled_millis
from tieout.engine.joining import same, small_side
from tieout.engine.keys import PLACE, SESSION
from tieout.engine.looking import Look, compared_ledgers, ours, quiet_in
from tieout.engine.materialising import materialised, no_rows
from tieout.engine.position_sets import outside
from tieout.engine.positions import commits_of
from tieout.engine.proof import evidence_type
from tieout.engine.quiet import Quiet, Sums, as_messages, by_key
from tieout.engine.records import as_records
from tieout.engine.rest import Rest
from tieout.engine.rising import Order, in_doubt
from tieout.engine.scope import Scope
from tieout.engine.session import settings_of
from tieout.engine.statement import COUNTS, POSSIBLE_EFFECTS
from tieout.model import Identity, Ledger

_ONCE_PER_MESSAGE: Final = ("attempts", "acked_attempts", "messages", "accepted", "delivered")
_ONCE_PER_EFFECT: Final = ("effects", "first_effects")


def has_doubts(scope: Scope, bounds: DataFrame | None) -> bool:
    """Return whether an order or a commit is broken, every row of both sides being a message."""
    output = ours(scope, Ledger.DELIVERED)
    return any(not doubt.isEmpty() for doubt in (*doubtful_commits(scope, bounds, output), *reorders(scope)))


def doubtful_commits(scope: Scope, bounds: DataFrame | None, output: DataFrame) -> Iterator[DataFrame]:
    """Yield the commits below their predecessors or outside the log, and those that output went on without.

    `output` are rows of the group's output with their positions.
    """
    commits = commits_of(scope)
    if commits is None:
        return
    yield commit_regression(scope, commits).select("topic")
    if bounds is not None:
        yield commit_out_of_range(scope, commits, bounds).select("topic")
    paused = None if scope.contract.is_queue else _in_pauses(scope, commits, output)
    if paused is not None:
        yield commit_stale(scope, commits, paused).select("topic")


def _in_pauses(scope: Scope, commits: DataFrame, output: DataFrame) -> DataFrame | None:
    """Return the output within pauses between commits that are longer than it may go on without one; None for none.

    The columns are those of `positions.progress_of`.
    """
    coverage = scope.evidence[Ledger.COMMITTED].coverage
    if not coverage.is_sound or coverage.complete_until is None:
        return None
    in_time = Window.partitionBy(*PLACE).orderBy("committed_at")
    dated = commits.filter(F.col("committed_at").isNotNull()).select(*PLACE, "committed_at").distinct()
    pauses = materialised(
        dated.select(
            *[F.col(name).alias(f"of_{name}") for name in PLACE],
            F.col("committed_at").alias("since"),
            F.coalesce(F.lead("committed_at").over(in_time), F.lit(coverage.complete_until)).alias(
                "following"
            ),
        ).filter(F.col("following") - F.col("since") > F.lit(scope.patience))
    )
    if pauses.isEmpty():
        return None
    is_inside = same(PLACE, "of_") & (F.col("at") >= F.col("since")) & (F.col("at") < F.col("following"))
    effects = output.select(*PLACE, "offset", F.col("processed_at").alias("at"), F.lit("effect").alias("by"))
    return effects.join(F.broadcast(pauses), is_inside, how="left_semi")


def reorders(scope: Scope) -> Iterator[DataFrame]:
    """Yield the reorders that the evidence allows to judge, one frame a class, of what a scan leaves in doubt."""
    sent, arrived = (ours(scope, ledger) for ledger in SIDES)
    if scope.has(Ledger.PRODUCED, "sequence"):
        sent = in_doubt(sent, [Order((*SESSION, *PLACE), "sequence")])
        yield reorder_producer(scope, as_messages(sent, Ledger.PRODUCED)).select("topic")
    shows_keys = scope.has(Ledger.PRODUCED, "key_hash")
    if shows_turns(scope) or shows_keys:
        arrived = in_doubt(arrived, _orders_of_output(scope))
    if shows_turns(scope):
        handed = by_key(arrived) if scope.contract.ordering == "key" else arrived
        yield reorder_consumer(scope, handed).select("topic")
    if shows_keys:
        yield reorder_output(scope, as_messages(arrived, Ledger.DELIVERED)).select("topic")


def _orders_of_output(scope: Scope) -> list[Order]:
    """Return the orders without which no position, of a key or of all, can have come before a lower one."""
    orders = [Order(PLACE, "unix_micros(processed_at)")]
    if scope.has(Ledger.DELIVERED, "delivery_sequence"):
        orders.append(Order((*PLACE, "consumer_id"), "delivery_sequence"))
    return orders


def sums_of(compared: Compared, rest: Rest) -> Sums:
    """Return what the messages that are not left to the rules add up to."""
    looked = None if rest.look is None else materialised(_looked(rest.look.marks, rest, compared.widths))
    return Sums(
        counts=materialised(_counts(compared, rest.look, looked)),
        latencies=materialised(_latencies(compared, rest.look, looked)),
        share=1 << compared.widths.bucket_bits,
    )


def quiet_of(scope: Scope, compared: Compared, rest: Rest, bounds: DataFrame | None) -> Quiet:
    """Return the messages of the scope that are not left to the rules, with all that rules may ask of them.

    `bounds` are the log's, None where none is declared.
    """
    rows = {ledger: outside(ours(scope, ledger), rest.positions) for ledger in compared_ledgers(scope)}
    positions = None
    if bounds is not None:
        rows[Ledger.LOG] = as_records(rows[Ledger.LOG])
        positions = materialised(quiet_positions(rows[Ledger.LOG], ranges_within(scope, bounds)))
    return Quiet(
        sums=sums_of(compared, rest),
        rows=rows,
        progress=materialised(progress_of_quiet(scope, _furthest(compared), rows[Ledger.DELIVERED])),
        contents=None if rest.rows is None else _contents(scope, rest.rows, rows[Ledger.PRODUCED]),
        writers=rows[Ledger.LOG] if scope.has(Ledger.LOG, "broker_producer_id") else None,
        positions=positions,
        roomy=settings_of(scope.rows(Ledger.PRODUCED).sparkSession),
    )


def quiet_balance(scope: Scope, bounds: DataFrame) -> DataFrame:
    """Return the offset balance of a settled window, in which each record of the log is a delivered message's."""
    ranges = ranges_within(scope, bounds)
    return materialised(balance_of(ranges, quiet_positions(ours(scope, Ledger.LOG), ranges)))


def ranges_within(scope: Scope, bounds: DataFrame) -> DataFrame:
    """Return the ranges of the log's offsets that the window judges, kept."""
    return materialised(ranges_of(scope, ours(scope, Ledger.LOG), bounds))


def _untouched(buckets: DataFrame, look: Look | None) -> DataFrame:
    """Return the buckets that nobody looked into."""
    if look is None:
        return buckets
    return buckets.limit(0) if look.touched is None else outside(buckets, look.touched, F.col("bucket"))


def _looked(marks: DataFrame, rest: Rest, widths: Widths) -> DataFrame:
    """Return what the positions of a look that are not left to the rules add up to, one row a bucket.

    | topic | partition | sent | seen | micros | seconds |
    |-------|-----------|------|------|--------|---------|
    | a     | 0         | 126  | 126  | 63000  | 0.0005  |

    `micros` and `seconds` are of the messages that the window owns: of all, and of one by its lot; null without one.
    """
    return (
        outside(quiet_in(marks), rest.positions)
        .groupBy(*PLACE, bucket_of(widths))
        .agg(
            F.count("took").alias("sent"),
            F.count_if("is_seen").alias("seen"),
            F.sum(F.col("took").cast("decimal(38,0)")).alias("micros"),
            (F.min_by("took", "lot") / 1_000_000).alias("seconds"),
        )
        .select(*PLACE, "sent", "seen", "micros", "seconds")
    )


def _counts(compared: Compared, look: Look | None, looked: DataFrame | None) -> DataFrame:
    """Return the statement's counts per topic partition that the window touches with quiet messages."""
    nothing = F.lit(0).cast("bigint")
    sent, arrived = (_untouched(side.filter("is_plain"), look) for side in (compared.sent, compared.arrived))
    inside = sent.select(*PLACE, F.col("inside").alias("sent"), nothing.alias("seen")).unionByName(
        arrived.select(*PLACE, nothing.alias("sent"), F.col("inside").alias("seen"))
    )
    if looked is not None:
        inside = inside.unionByName(looked.select(*PLACE, "sent", "seen"))
    return counts_by_place(inside)


def counts_by_place(inside: DataFrame) -> DataFrame:
    """Return the statement's counts per topic partition, given how many messages each row has `sent` and `seen`."""
    nothing = F.lit(0).cast("bigint")
    summed = (
        inside.groupBy(*PLACE)
        .agg(F.sum("sent").alias("sent"), F.sum("seen").alias("seen"))
        .filter((F.col("sent") > 0) | (F.col("seen") > 0))
    )
    values = dict.fromkeys((*COUNTS, POSSIBLE_EFFECTS), nothing)
    values |= dict.fromkeys(_ONCE_PER_MESSAGE, F.col("sent")) | dict.fromkeys(_ONCE_PER_EFFECT, F.col("seen"))
    return summed.select(*PLACE, *[value.alias(name) for name, value in values.items()])


def _latencies(compared: Compared, look: Look | None, looked: DataFrame | None) -> DataFrame:
    """Return per bucket the `micros` of the window's quiet messages together, and the `seconds` of one by its hash."""
    whole = _untouched(compared.together.filter("owned > 0"), look)
    millis = sampled_millis(F.col("seen_sample")) - sampled_millis(F.col("done_sample"))
    micros = F.try_subtract("seen_micros", "done_micros").cast("decimal(38,0)").alias("micros")
    known = whole.select((millis / 1000).alias("seconds"), micros)
    if looked is None:
        return known
    return known.unionByName(looked.filter("sent > 0").select("seconds", "micros"))


def _furthest(compared: Compared) -> DataFrame:
    return compared.arrived.filter("is_plain").groupBy(*PLACE).agg(F.max("last").alias("offset"))


def progress_of_quiet(scope: Scope, furthest: DataFrame, output: DataFrame) -> DataFrame:
    """Return how far quiet messages show the group to be, and which of them lie in long pauses between commits.

    `furthest` are the highest of their positions, `output` their rows of the output with their positions.
    """
    when, by = F.lit(None).cast("timestamp").alias("at"), F.lit("effect").alias("by")
    reached = furthest.select(*PLACE, "offset", when, by)
    commits = commits_of(scope)
    paused = None if commits is None else _in_pauses(scope, commits, output)
    return reached if paused is None else reached.unionByName(paused)


def _contents(scope: Scope, left: Mapping[Ledger, DataFrame], sent: DataFrame) -> DataFrame | None:
    """Return the topics and payloads that were sent quietly and that an effect without identity shows as well.

    What was left of the log may be the record of such an effect.
    """
    by_position = scope.contract.identity is Identity.POSITION
    may_be_nameless = by_position or scope.evidence[Ledger.DELIVERED].may_lack_id
    if not may_be_nameless:
        return None
    effects = left[Ledger.DELIVERED]
    nameless = effects if by_position else effects.filter(F.col("message_id").isNull())
    nameless = nameless.select("topic", "payload_hash")
    if Ledger.LOG in left:
        nameless = nameless.unionByName(left[Ledger.LOG].select("topic", "payload_hash"))
    shown = materialised(
        nameless.filter(F.col("payload_hash").isNotNull())
        .select(F.col("topic").alias("of_topic"), F.col("payload_hash").alias("copied"))
        .distinct()
    )
    if shown.isEmpty():
        return None
    is_same = F.col("payload_hash").eqNullSafe(F.col("copied")) & F.col("topic").eqNullSafe(F.col("of_topic"))
    found = sent.join(small_side(shown), is_same, how="left_semi")
    return materialised(found.select("topic", F.col("payload_hash").alias("sent")).distinct())


def no_breaks(scope: Scope, columns: tuple[str, ...]) -> DataFrame:
    """Return no breaks, in the columns that a clean window's breaks have."""
    types = dict.fromkeys(columns, "string") | {
        "flags": "array<string>",
        "partition": "int",
        "offset": "bigint",
        "positions": "array<struct<topic:string,partition:int,offset:bigint>>",
        "admissible": "array<string>",
        "is_covered": "boolean",
        "evidence": evidence_type(scope.evidence.keys()),
    }
    schema = ",".join(f"`{name}` {types[name]}" for name in columns)
    return no_rows(scope.rows(Ledger.PRODUCED).sparkSession, schema)

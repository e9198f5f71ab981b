"""POSITION_DISAGREEMENT: a position that an engine restarts from, beside one of the same group that it does not.

Docs: docs/reference/taxonomy.md, sections 3 and 8 (item 7); docs/reference/interpretations.md, 146.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tieout.engine.classes.standing import at_place, commit_row, standing
from tieout.engine.joining import same
from tieout.engine.keys import PLACE
from tieout.engine.matching import Matched
from tieout.engine.positions import commits_of
from tieout.engine.scope import Scope
from tieout.model import POSITION_LEDGERS, BreakClass, Ledger, Locus

_ROW = ("committed_at", "committed_offset", "first_offset", "metadata", "taken_at")


def position_disagreements(scope: Scope, messages: DataFrame, found: Matched) -> list[DataFrame]:
    """Return one break a partition of which one ledger's latest position lies beyond the other's; none for no ledger.

    It is flagged `ahead` where that of `mirrored` does, and `behind` where it has lain below that of `committed` for
    longer than messages may take. A ledger without a row there stands at the partition's first position. The break is
    as old as the first row beyond, or as the row that fell back, and one of that time's window.
    """
    mirrored, is_placed = commits_of(scope, Ledger.MIRRORED), "topic IS NOT NULL AND partition IS NOT NULL"
    if found.commits is None or mirrored is None:
        return []
    if not all(scope.evidence[ledger].coverage.is_present for ledger in POSITION_LEDGERS):
        return []
    commits, mirrored = found.commits.filter(is_placed), mirrored.filter(is_placed)
    both = _latest(commits, "c").join(_latest(mirrored, "m"), same(PLACE, "m_"), how="full")
    places = both.select(
        *[F.coalesce(name, f"m_{name}").alias(name) for name in PLACE], "c_latest", "m_latest"
    )
    base = _first_positions(messages, found).select(
        *[F.col(name).alias(f"b_{name}") for name in PLACE], "base"
    )
    known = places.join(F.broadcast(base), same(PLACE, "b_"), how="left")
    restart = F.coalesce("c_latest.committed_offset", "base")
    kept = F.coalesce("m_latest.committed_offset", "base", F.when(restart.isNotNull(), F.lit(0)))
    apart = known.withColumns({"restart": restart, "kept": kept.cast("bigint")}).filter(
        F.col("restart") != F.col("kept")
    )
    is_ahead = F.col("kept") > F.col("restart")
    flagged = apart.withColumns(
        {"flag": F.when(is_ahead, "ahead").otherwise("behind"), "offset": F.least("restart", "kept")}
    ).select(*PLACE, "offset", "flag", "c_latest", "m_latest")
    return [_told(scope, _with_since(flagged, commits, mirrored))]


def _latest(commits: DataFrame, prefix: str) -> DataFrame:
    """Return per partition its latest row, of one instant the highest; one without a time stood when it was taken."""
    turn = F.struct(F.coalesce("committed_at", "taken_at").alias("stood_at"), "committed_offset", *[
        F.col(name).alias(name) for name in _ROW if name != "committed_offset"
    ])  # fmt: skip
    named = PLACE if prefix == "c" else [F.col(name).alias(f"{prefix}_{name}") for name in PLACE]
    return commits.groupBy(*named).agg(F.max(turn).alias(f"{prefix}_latest"))


def _first_positions(messages: DataFrame, found: Matched) -> DataFrame:
    """Return per partition the first position that anything knows of: the log's, else the lowest sent or committed."""
    offsets = [
        messages.filter(F.col("acceptance") == "accepted").select(*PLACE, F.col("first_offset").alias("low"))
    ]
    if found.commits is not None:
        offsets.append(found.commits.select(*PLACE, F.col("first_offset").alias("low")))
    lowest = (
        reduce(DataFrame.unionByName, offsets)
        .filter("low IS NOT NULL")
        .groupBy(*PLACE)
        .agg(F.min("low").alias("base"))
    )
    if found.bounds is None:
        return lowest
    starts = found.bounds.select(*[F.col(name).alias(f"s_{name}") for name in PLACE], "log_start")
    together = lowest.join(F.broadcast(starts), same(PLACE, "s_"), how="full")
    names = [F.coalesce(name, f"s_{name}").alias(name) for name in PLACE]
    return together.select(*names, F.coalesce("log_start", "base").alias("base"))


def _with_since(apart: DataFrame, commits: DataFrame, mirrored: DataFrame) -> DataFrame:
    """Return partitions with when the first row beyond the lower position was dated, and taken if none is dated."""
    rows = commits.withColumn("beyond", F.lit("behind")).unionByName(
        mirrored.withColumn("beyond", F.lit("ahead"))
    )
    places = apart.select(
        *[F.col(name).alias(f"p_{name}") for name in PLACE], F.col("offset").alias("lower"), "flag"
    )
    is_beyond = (
        same(PLACE, "p_") & (F.col("beyond") == F.col("flag")) & (F.col("committed_offset") > F.col("lower"))
    )
    firsts = (
        rows.join(F.broadcast(places), is_beyond, how="inner")
        .groupBy(*[f"p_{name}" for name in PLACE])
        .agg(F.min("committed_at").alias("dated"), F.min("taken_at").alias("taken"))
    )
    return apart.join(firsts, same(PLACE, "p_"), how="left")


def _told(scope: Scope, apart: DataFrame) -> DataFrame:
    is_ahead, is_dated = F.col("flag") == "ahead", F.col("dated").isNotNull()
    left = F.when(is_ahead, F.col("c_latest.committed_at")).otherwise(F.col("m_latest.committed_at"))
    since = F.when(is_dated, F.greatest("dated", left)).otherwise(F.col("taken"))
    known = apart.withColumn("since", since)
    start = F.lit(scope.window.start)
    is_standing = F.coalesce(F.col("taken") >= start, F.lit(True)) & scope.holds(start, F.col("offset"))
    is_here = F.when(is_dated, scope.holds(F.col("since"), F.col("offset"))).otherwise(is_standing)
    rows = known.filter(is_here & (is_ahead | _is_overdue(scope))).withColumns(
        {
            "positions": F.array(F.struct("topic", "partition", "offset")),
            "is_shown": _is_shown(scope, is_ahead),
            "commit_rows": _rows_of("c_latest"),
            "mirrored_rows": _rows_of("m_latest"),
        }
    )
    locus, flags = F.lit(Locus.OFFSET_STORE.value), F.array("flag")
    subject = at_place("flag", "since")
    return standing(rows, BreakClass.POSITION_DISAGREEMENT, "commit", locus, subject=subject, flags=flags)


def _is_overdue(scope: Scope) -> Column:
    """Return whether the mirrored position is known to have been behind for longer than a message may take.

    A row without a time tells of it up to when its table was taken, a history as far as it is complete.
    """
    row = F.col("m_latest")
    complete_until = F.lit(scope.evidence[Ledger.MIRRORED].coverage.complete_until).cast("timestamp")
    is_undated = row.isNotNull() & row["committed_at"].isNull()
    until = F.when(is_undated, row["taken_at"]).otherwise(complete_until)
    return F.coalesce(until > F.col("since") + F.lit(scope.patience), F.lit(False))


def _is_shown(scope: Scope, is_ahead: Column) -> Column:
    """Return whether both ledgers cover what the break is told by; without any time, whether they are sound."""
    since, skew = F.col("since"), F.lit(scope.contract.clock_skew)
    ahead = scope.covered_between(Ledger.MIRRORED, since, since) & scope.covered_between(
        Ledger.COMMITTED, since, since + skew
    )
    behind = scope.covered_between(Ledger.COMMITTED, since, since) & scope.covered_between(
        Ledger.MIRRORED, since, since + F.lit(scope.patience)
    )
    told = [scope.evidence[ledger].coverage for ledger in (Ledger.COMMITTED, Ledger.MIRRORED)]
    is_told = all(coverage.is_sound and coverage.complete_until is not None for coverage in told)
    return F.when(since.isNull(), F.lit(is_told)).when(is_ahead, ahead).otherwise(behind)


def _rows_of(latest: str) -> Column:
    """Return a ledger's latest row as it stands in a break's evidence; none where the ledger has none there."""
    row = commit_row(
        f"{latest}.committed_offset", f"{latest}.committed_at", f"{latest}.first_offset", f"{latest}.metadata"
    )
    return F.when(F.col(latest).isNotNull(), F.array(row))

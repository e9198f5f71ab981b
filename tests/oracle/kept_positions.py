"""Positions as engines keep them: in ranges, some of them lost, repeated or overlapping, and a second time."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any

from tests.engine.histories import GRACE_END, START

Row = dict[str, Any]


def in_ranges(rng: Random, commits: list[Row]) -> list[Row]:
    """Return commits that say where they begin: mostly where the one before ended, now and then anywhere near."""
    wrong, gone = rng.choice((0.0, 0.0, 0.3)), rng.choice((0.0, 0.2, 0.4))
    repeated, unsaid = rng.choice((0.0, 0.0, 0.2)), rng.choice((0.0, 0.0, 0.0, 0.2))
    names_batches, taken = rng.random() < 0.3, rng.choice((None, GRACE_END, START - timedelta(minutes=1)))
    is_dated = rng.random() < 0.8
    ranges: list[Row] = []
    ends: dict[int, int] = {}
    for number, row in enumerate(split(rng, commits)):
        first = ends.get(row["partition"], 0)
        ends[row["partition"]] = row["committed_offset"]
        if rng.random() < gone:
            continue
        if rng.random() < wrong:
            first = max(0, first + rng.choice((-2, -1, 1, 2)))
        made = {**row, "first_offset": None if rng.random() < unsaid else first}
        made |= {"metadata": str(number)} if names_batches else {}
        made |= {} if is_dated else {"committed_at": None, "taken_at": taken}
        ranges.append(made)
        if rng.random() < repeated:
            ranges.append({**made, **_again(rng, made)})
    return ranges


def split(rng: Random, commits: list[Row]) -> list[Row]:
    """Return commits with more between them, as an engine of small batches has; those of a partition in their order."""
    found = []
    share = rng.choice((0.0, 0.7, 0.7))
    by_partition: dict[int, list[Row]] = {}
    for row in commits:
        by_partition.setdefault(row["partition"], []).append(row)
    for rows in by_partition.values():
        start = {**rows[0], "committed_offset": 0}
        for before, row in pairwise([start, *rows]):
            between = range(before["committed_offset"] + 1, row["committed_offset"])
            found += [
                {
                    **row,
                    "committed_offset": offset,
                    "committed_at": row["committed_at"] - timedelta(seconds=1),
                }
                for offset in between
                if rng.random() < share
            ]
            found.append(row)
    return found


def _again(rng: Random, row: Row) -> Row:
    """Return what another row of the same range has of its own: nothing, another time, or another end."""
    moved = timedelta(minutes=rng.choice((-1, 1, 90)))
    later = {"committed_at": None if row["committed_at"] is None else row["committed_at"] + moved}
    return rng.choice(
        ({}, later, {**later, "committed_offset": row["committed_offset"] + 1}, {"metadata": "again"})
    )


def mirrored_from(rng: Random, commits: list[Row]) -> list[Row]:
    """Return the second position of a group: as the first, behind it, ahead of it, without times, or not there."""
    shift, lag = rng.choice((0, 0, 0, 1, -1)), timedelta(seconds=rng.choice((0, 1, 1, 1200)))
    gone, is_dated = rng.choice((0.0, 0.3, 0.6, 1.0)), rng.random() < 0.7
    taken = rng.choice((None, GRACE_END, GRACE_END + timedelta(hours=1), START))
    mirrored = [
        {
            **row,
            "committed_offset": max(0, row["committed_offset"] + shift),
            "committed_at": row["committed_at"] + lag if is_dated else None,
            "taken_at": None if is_dated else taken,
        }
        for row in commits
        if rng.random() >= gone
    ]
    return (
        [*mirrored, {**rng.choice(commits), "partition": 7}] if commits and rng.random() < 0.1 else mirrored
    )

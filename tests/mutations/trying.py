"""Judges histories with a mutant of the rounds, in a process that keeps them, and says whether one of them notices."""

from __future__ import annotations

from typing import Any

import duckdb
from tests.engine.histories import History, load_cases
from tests.engine.marking import batches
from tests.judging.expected import expected_of, unlike
from tests.judging.kernel import PROGRAM, is_of_one_topic_each, kernel_statements
from tests.mutations.mutants import Mutant
from tests.oracle.random_histories import families

FAMILIES, SIZE = 16, 80

Bucket = list[tuple[History, dict[str, Any]]]
"""Histories that are judged together, with what is expected of each."""

_buckets: list[Bucket] = []


def prepare(is_golden: bool) -> None:
    """Draw the histories of a process, without those on which the rounds as they are differ already."""
    drawn = families("mutants", FAMILIES, SIZE, wild_share=0)
    random = [(one, expected_of(one)) for family in drawn for one in family]
    golden = [(one, one.expect) for one in load_cases() if is_of_one_topic_each(one)] if is_golden else []
    for every in (random, golden):
        histories = [history for history, _ in every]
        for batch in batches(histories):
            bucket = [every[place] for place in batch.places]
            statements = kernel_statements(batch.histories)
            _buckets.append(
                [one for one, found in zip(bucket, statements, strict=True) if not unlike(one[1], found)]
            )


def fate_of(mutant: Mutant) -> str:
    """Return whether a history notices the mutant: `killed`, `survived`, or `refused` where it is no valid SQL."""
    changed = mutant.applied(PROGRAM)
    for place, bucket in enumerate(_buckets):
        try:
            found = kernel_statements([history for history, _ in bucket], steps=changed)
        except (duckdb.BinderException, duckdb.ParserException):
            return "refused"
        except (duckdb.Error, ArithmeticError, LookupError, TypeError, ValueError):
            return "killed"
        if any(unlike(expected, one) for (_, expected), one in zip(bucket, found, strict=True)):
            _buckets.insert(
                0, _buckets.pop(place)
            )  # what noticed one mutant of a file is likely to notice the next
            return "killed"
    return "survived"

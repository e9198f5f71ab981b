"""Tries mutants of the rounds' SQL on histories, and tells which of them no history notices.

A mutant is killed where a statement is no longer what the oracle, or with `--golden` the golden history, expects.
Without arguments it tries some mutants of every file; `--all` tries all of them, which takes a night. The exit code is
1 where a file has mutants and none of those that were tried was killed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from random import Random

from tests.judging.kernel import PROGRAM
from tests.mutations.mutants import Mutant, mutants
from tests.mutations.trying import fate_of, prepare


def main(arguments: Sequence[str]) -> int:
    """Return 0 where every file has a mutant that was killed."""
    options = _options(arguments)
    chosen = list(_chosen(options))
    context = get_context("spawn")
    survivors: dict[str, list[str]] = defaultdict(list)
    tried, killed = Counter[str](), Counter[str]()
    with ProcessPoolExecutor(
        options.processes, mp_context=context, initializer=prepare, initargs=(options.golden,)
    ) as pool:
        for mutant, fate in zip(chosen, pool.map(fate_of, chosen), strict=True):
            if fate == "refused":
                continue
            tried[mutant.file] += 1
            killed[mutant.file] += fate == "killed"
            if fate == "survived":
                survivors[mutant.file].append(str(mutant))
                print(f"survived: {mutant}", flush=True)
    unnoticed = sorted(file for file in tried if not killed[file])
    print(f"{tried.total()} mutants of {len(tried)} files: {killed.total()} killed")
    for file in unnoticed:
        print(f"no mutant of {file} was killed ({tried[file]} tried)")
    return 1 if unnoticed else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutate", description=__doc__)
    parser.add_argument("files", nargs="*", help="files such as lines/30_skipped.sql; all of them by default")
    parser.add_argument("--per-file", type=int, default=1, help="how many mutants of each file are tried")
    parser.add_argument("--all", action="store_true", help="try every mutant")
    parser.add_argument("--golden", action="store_true", help="try them on the golden histories, too")
    parser.add_argument("--seed", default="1", help="chooses other mutants")
    parser.add_argument("--processes", type=int, default=2)
    return parser.parse_args(arguments)


def _chosen(options: argparse.Namespace) -> Iterator[Mutant]:
    for file, text in PROGRAM:
        if options.files and file not in options.files:
            continue
        found = list(mutants(file, text))
        if not options.all:
            rng = Random(f"{options.seed}/{file}")  # noqa: S311 - repeatable, not secret
            found = rng.sample(found, min(options.per_file, len(found)))
        yield from found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

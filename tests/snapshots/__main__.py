"""Holds today's engine against the snapshots, or writes them anew.

    python -m tests.snapshots                           all of it; the same as `make snapshots`
    python -m tests.snapshots --golden --only lost      golden histories whose names have the word
    python -m tests.snapshots --random 200              the first 200 random histories, of all families in turn
    python -m tests.snapshots --write                   keeps what today's engine says of every history
    python -m tests.snapshots --write --missing         of those that are new, or other ones than before

What was judged before an interruption is kept. Exit 0 where nothing differs, 1 where something does.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.snapshots.comparing import Judge, compared, judged
from tests.snapshots.drawing import SEEDS, digest_of, golden, random_histories, recordings
from tests.snapshots.judging import judge
from tests.snapshots.keeping import FOLDER, Snapshot, read, write
from tests.snapshots.recorded import judge_recordings

from tieout import settings
from tieout.engine.session import local_session

_WHAT: Final = {
    "golden": "golden histories of tests/engine/cases",
    "random": f"random histories: {SEEDS}",
    "recordings": "recordings of examples/",
}


def main(words: list[str]) -> int:
    """Compare or write the parts that are asked for; return the exit code."""
    requested = _arguments(words)
    parts = [name for name in _WHAT if getattr(requested, name) is not None] or list(_WHAT)
    if parts == ["recordings"]:
        return _one_part("recordings", requested)
    codes = [_one_part(name, requested) for name in parts if name != "recordings"]
    if "recordings" in parts:
        # Sources are read by a classic session, and a process has either that or one of Spark Connect.
        command = [sys.executable, "-m", "tests.snapshots", "--recordings"]
        command += [f"--{name}" for name in ("write", "missing") if getattr(requested, name)]
        command += ["--only", requested.only] if requested.only else []
        codes.append(subprocess.run(command, check=False).returncode)
    return max(codes)


def _one_part(name: str, requested: argparse.Namespace) -> int:
    drawn: dict[str, Callable[[], dict[str, Any]]] = {
        "golden": golden,
        "random": partial(random_histories, requested.random or None),
        "recordings": recordings,
    }
    histories = drawn[name]()
    path = FOLDER / f"{name}.jsonl.gz"
    if requested.only:
        histories = {one: histories[one] for one in histories if requested.only in one}
    if requested.write:
        return _written(name, histories, path, requested)
    found = list(_judged(name, histories))
    reported = compared(read(path), found, is_whole=not requested.only and not requested.random)
    breaks = sum(len(one.breaks) for one in found)
    unlike = len({line.partition(": ")[0] for line in reported})
    print(*reported, sep="\n", end="\n" if reported else "")
    print(f"{name}: compared {len(found)} histories with {breaks} breaks, {unlike or 'none'} differ")
    return 1 if reported or not found else 0


def _written(name: str, histories: dict[str, Any], path: Path, requested: argparse.Namespace) -> int:
    kept = read(path) if path.exists() else {}
    digest = _digest_in(name)
    if not requested.only and not requested.random:
        kept = {one: kept[one] for one in kept if one in histories}
    if requested.missing:
        known = {one: snapshot.digest for one, snapshot in kept.items()}
        histories = {one: found for one, found in histories.items() if known.get(one) != digest(found)}
    try:
        for found in _judged(name, histories) if histories else ():
            kept[found.name] = found
    finally:
        write(path, _WHAT[name], kept.values())
        print(f"{name}: kept {len(kept)} histories, {path.stat().st_size:,} bytes")
    return 0


def _digest_in(name: str) -> Callable[[Any], str]:
    return (lambda one: one.digest) if name == "recordings" else digest_of


def _judged(name: str, histories: dict[str, Any]) -> Iterator[Snapshot]:
    if name == "recordings":
        spark = local_session("tieout-snapshots", settings.jars(set()), evidence_bytes=0)
        requested: Judge = partial(judge_recordings, spark)
    else:
        requested = judge
    began = time.monotonic()
    for number, one in enumerate(judged(requested, histories, _digest_in(name)), 1):
        yield one
        seconds = time.monotonic() - began
        print(f"{number} of {len(histories)} histories, {seconds:.0f} s", file=sys.stderr, flush=True)


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tests.snapshots", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--golden", action="store_true", default=None, help="the golden histories")
    parser.add_argument("--recordings", action="store_true", default=None, help="the recordings in examples/")
    parser.add_argument(
        "--random", type=int, nargs="?", const=0, metavar="N", help="the random histories, or the first N"
    )
    parser.add_argument("--only", metavar="WORD", help="histories whose names have the word")
    parser.add_argument("--write", action="store_true", help="keep what is said instead of comparing it")
    parser.add_argument("--missing", action="store_true", help="with --write: only what has no snapshot yet")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

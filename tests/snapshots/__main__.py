"""Holds today's engine against the snapshots, or writes them anew.

    python -m tests.snapshots                           all of it; the same as `make snapshots`
    python -m tests.snapshots --golden --only lost      golden histories whose names have the word
    python -m tests.snapshots --random 200              the first 200 random histories, of all families in turn
    python -m tests.snapshots --golden --alone          each in a run of its own: slow, and the engine's plain word
    python -m tests.snapshots --write                   writes what today's engine says; needs whole parts

Exit 0 where nothing differs, 1 where something does.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from functools import partial
from typing import Any, Final

from tests.engine.connecting import connected_session
from tests.snapshots.comparing import compared, judged
from tests.snapshots.drawing import SEEDS, digest_of, golden, random_histories, recordings
from tests.snapshots.keeping import FOLDER, Snapshot, read, write
from tests.snapshots.recorded import judge_recordings
from tests.snapshots.together import judge_alone, judge_together

from tieout import settings
from tieout.engine.session import local_session

_WHAT: Final = {
    "golden": "golden histories of tests/engine/cases",
    "random": f"random histories: {SEEDS}",
    "recordings": "recordings of examples/",
}


def main(words: list[str]) -> int:
    """Compare or write the parts that are asked for; return the exit code."""
    asked = _arguments(words)
    parts = [name for name in _WHAT if getattr(asked, name) is not None] or list(_WHAT)
    if parts == ["recordings"]:
        return _one_part("recordings", asked)
    codes = [_one_part(name, asked) for name in parts if name != "recordings"]
    if "recordings" in parts:
        # Sources are read by a classic session, and a process has either that or one of Spark Connect.
        kept = ["--write"] if asked.write else []
        only = ["--only", asked.only] if asked.only else []
        command = [sys.executable, "-m", "tests.snapshots", "--recordings", *kept, *only]
        codes.append(subprocess.run(command, check=False).returncode)
    return max(codes)


def _one_part(name: str, asked: argparse.Namespace) -> int:
    histories: dict[str, Any] = {
        "golden": golden,
        "random": partial(random_histories, asked.random or None),
        "recordings": recordings,
    }[name]()
    if asked.only:
        histories = {one: histories[one] for one in histories if asked.only in one}
    path = FOLDER / f"{name}.jsonl.gz"
    found = _judged(name, histories, is_alone=asked.alone)
    if asked.write:
        write(path, _WHAT[name], found)
        print(f"{name}: wrote {len(found)} histories, {path.stat().st_size:,} bytes")
        return 0
    told = compared(read(path), found, is_whole=not asked.only and not asked.random)
    breaks = sum(len(one.breaks) for one in found)
    unlike = len({line.partition(": ")[0] for line in told})
    print(*told, sep="\n", end="\n" if told else "")
    print(f"{name}: compared {len(found)} histories with {breaks} breaks, {unlike or 'none'} differ")
    return 1 if told or not found else 0


def _judged(name: str, histories: dict[str, Any], *, is_alone: bool) -> list[Snapshot]:
    if name == "recordings":
        spark = local_session("tieout-snapshots", settings.jars(set()), is_small=True)
        return judged(partial(judge_recordings, spark), histories, lambda one: one.digest)
    judge = judge_alone if is_alone else judge_together
    return judged(partial(judge, connected_session()), histories, digest_of)


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
    parser.add_argument("--alone", action="store_true", help="judge each history in a run of its own")
    parser.add_argument("--write", action="store_true", help="write the parts instead of comparing them")
    asked = parser.parse_args(words)
    if asked.write and (asked.only or asked.random):
        parser.error("--write writes whole parts: leave out --only and the number of --random")
    return asked


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

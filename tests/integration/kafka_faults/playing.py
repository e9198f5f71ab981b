"""Plays the faults and writes their evidence and their truth.

`python -m tests.integration.kafka_faults.playing FOLDER [TOPIC …]`, in the recorder's own environment
(requirements/record.txt): nothing here imports Tieout.
"""

from __future__ import annotations

import json
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tests.integration.kafka_faults.cluster import Cluster, new_cluster
from tests.integration.kafka_faults.faults import (
    compaction,
    consumers,
    leaders,
    positions,
    producers,
    rebalances,
    transactions,
)
from tests.integration.kafka_faults.scene import Case, Scene
from tools.record.jars import Jars
from tools.record.messages import now_text

Play = Callable[[Mapping[str, Scene]], list[Case]]

_AT_A_TIME: Final = 4
_CHECKPOINTED_AFTER: Final = 1.0
"""Seconds after which brokers have written down where their logs start; see `cluster.py`."""
ROOT: Final = Path(__file__).resolve().parents[3]
ALONE: Final[dict[str, Callable[[Scene], list[Case]]]] = {
    "commit-first": consumers.killed_after_commit,
    "write-first": consumers.killed_before_commit,
    "worker-queue": consumers.killed_with_a_queue,
    "transactions": transactions.ended_badly,
    "open-transaction": transactions.left_open,
    "reset-to-earliest": positions.reset_to_earliest,
    "reset-to-latest": positions.reset_to_latest,
    "group-deleted": positions.group_deleted,
    "recreated": positions.recreated,
    "recreated-when-read": positions.recreated_when_read,
    "overrun": positions.overrun,
    "compacted": compaction.compacted,
    "eager": rebalances.eager,
    "cooperative": rebalances.cooperative,
}
"""What happens to one topic on the first broker and to no other, by the topic's name."""
TOGETHER: Final[dict[tuple[str, ...], Play]] = {
    producers.TOPICS: producers.stopped_broker,
    leaders.TOPICS: leaders.dying_leaders,
}
"""What a fault of a broker does to several topics at once."""


def main(output: Path, names: list[str]) -> int:
    """Play the faults named, or all, and return 0; a fault that could not be played is told in `cases.json`."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with ExitStack() as stack:
        cluster = new_cluster(Jars(ROOT / ".tieout" / "kafka"), output / "cluster", stack)
        _say("starting a controller and two brokers")
        cluster.start()
        _say("playing")
        cases, failures = _play(cluster, output / "evidence", names, stack)
        time.sleep(_CHECKPOINTED_AFTER)
    document = {"cases": [asdict(case) for case in cases], "failures": failures}
    (output / "cases.json").write_text(json.dumps(document, indent=1))
    _say(f"{len(cases)} cases, {len(failures)} failures")
    return 0


def _play(
    cluster: Cluster, folder: Path, names: list[str], stack: ExitStack
) -> tuple[list[Case], dict[str, str]]:
    """Play what leaves the first broker be at the same time, and what kills it at last."""
    cases: list[Case] = []
    failures: dict[str, str] = {}

    def play(topics: tuple[str, ...], fault: Play) -> None:
        began = time.monotonic()
        try:
            scenes = {name: Scene(cluster, name, folder / name, stack) for name in topics}
            cases.extend(fault(scenes))
        except Exception:
            failures.update(dict.fromkeys(topics, traceback.format_exc()))
        _say(f"{', '.join(topics)}: {time.monotonic() - began:.1f} s")

    alone: dict[tuple[str, ...], Play] = {(name,): _alone(fault) for name, fault in ALONE.items()}
    plays = {**TOGETHER, **alone}
    selected = [topics for topics in plays if not names or set(topics) & set(names)]
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        list(
            pool.map(lambda topics: play(topics, plays[topics]), [t for t in selected if t != leaders.TOPICS])
        )
    if leaders.TOPICS in selected:
        needed = {*leaders.NEEDED, *(names or leaders.TOPICS)}
        play(tuple(name for name in leaders.TOPICS if name in needed), leaders.dying_leaders)
    return cases, failures


def _alone(fault: Callable[[Scene], list[Case]]) -> Play:
    """Return a fault of one topic as one of several topics."""
    return lambda scenes: fault(*scenes.values())


def _say(what: str) -> None:
    print(f"{now_text()} {what}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]).absolute(), sys.argv[2:]))

"""Plays the faults of engines and writes their evidence and their truth.

`python -m tests.integration.systems.playing FOLDER PLAY …`, in the recorder's own environment
(requirements/record.txt): nothing here imports Tieout. `TIEOUT_SYSTEMS_DATABASE` is the URL of a PostgreSQL.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from tests.integration.kafka_faults.cluster import Cluster, new_cluster
from tests.integration.systems import activemq, connect, dstreams, flink, pulsar, share, spark, storm, streams
from tests.integration.systems.engine import ROOT, Engine
from tests.integration.systems.scene import Case, Stage
from tests.integration.systems.selection import system_of
from tools.record.jars import Jars
from tools.record.messages import now_text

Play = Callable[[Stage], list[Case]]

DATABASE: Final = "TIEOUT_SYSTEMS_DATABASE"
SYSTEMS: Final[Mapping[str, Any]] = {
    "streams": streams,
    "share": share,
    "spark": spark,
    "dstreams": dstreams,
    "connect": connect,
    "flink": flink,
    "activemq": activemq,
    "pulsar": pulsar,
    "storm": storm,
}
"""Each module has `engine`, which compiles into a folder, and `PLAYS`."""
_AT_A_TIME: Final = 2
_CHECKPOINTED_AFTER: Final = 1.0
"""Seconds after which the broker has written down where its logs start; see `cluster.py`."""


def main(output: Path, names: list[str]) -> int:
    """Play the faults named and return 0; a fault that could not be played is told in `cases.json`."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with ExitStack() as stack:
        cluster = new_cluster(Jars(ROOT / ".tieout" / "kafka"), output / "cluster", stack, brokers=1)
        cluster.start()
        engines = {name: SYSTEMS[name].engine(output / name) for name in {system_of(name) for name in names}}
        cases: dict[str, list[Case]] = {}
        failures: dict[str, str] = {}

        def play(name: str) -> None:
            began = time.monotonic()
            try:
                cases[name] = _played(cluster, engines[system_of(name)], name, output / name, stack)
            except Exception:
                failures[name] = traceback.format_exc()
            _say(f"{name}: {time.monotonic() - began:.1f} s")

        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            list(pool.map(play, names))
        time.sleep(_CHECKPOINTED_AFTER)
    document = {
        "cases": {name: [asdict(case) for case in found] for name, found in cases.items()},
        "failures": failures,
    }
    (output / "cases.json").write_text(json.dumps(document, indent=1))
    return 0


def _played(cluster: Cluster, engine: Engine, name: str, folder: Path, stack: ExitStack) -> list[Case]:
    play: Play = SYSTEMS[system_of(name)].PLAYS[name]
    return play(Stage(name, cluster, engine, folder, stack, os.environ.get(DATABASE, "")))


def _say(what: str) -> None:
    print(f"{now_text()} {what}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]).absolute(), sys.argv[2:]))

"""Makes examples of played faults: their evidence, a contract for it, and the truth that the player knew.

`python -m tests.integration.systems.recording FOLDER [EXAMPLE …]`, in the recorder's own environment, once
`make engines` has fetched the engines; TIEOUT_SYSTEMS_SPARK names the folder of PySpark's jars. FOLDER is where
everything is played; Spark writes its name into the evidence. The contracts are in `recorded` beside this module.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import Template
from typing import Any, Final

import psycopg2
from psycopg2 import sql
from tests.integration.kafka_faults.cluster import OFFSETS_TOPIC
from tests.integration.systems.engine import ROOT
from tests.integration.systems.playing import DATABASE
from tests.integration.systems.playing import main as play
from tools.record.postgres import start_database

EXAMPLES: Final = ROOT / "examples" / "systems"
_CONTRACTS: Final = Path(__file__).parent / "recorded"
_NOT_EVIDENCE: Final = shutil.ignore_patterns(".*", "held", "lock", "db.data", "db.redo")
"""What begins with a dot, a consumer's own mark, and the index of KahaDB, which is made anew from the journal."""
STATE_TOPIC: Final = "__share_group_state"
_BROKER_FILES: Final = ("*.log", "partition.metadata", "log-start-offset-checkpoint")


@dataclass(frozen=True)
class Recording:
    """An example: the play it is of, each contract's place among the play's cases, and what it takes along.

    `topics` are the names of topics behind that of the play; `folders` are the application's own, `tables` are
    written out as CSV. The positions of a copy are undated where the files alone had their times: no commit is then
    known to be ahead of what was lost. `positions` is the topic in which Kafka keeps those of the group.
    """

    play: str
    contracts: dict[str, int]
    topics: Sequence[str] = ("in",)
    folders: Sequence[str] = ()
    tables: Sequence[str] = ()
    is_undated: bool = False
    positions: str = OFFSETS_TOPIC


RECORDINGS: Final = {
    "kafka_streams": Recording(
        "streams-at-least-once", {"contract.yml": 0, "contract_at_least_once.yml": 1}, ("in", "out")
    ),
    "kafka_share_group": Recording(
        "share-before", {"contract.yml": 0}, folders=("output",), positions=STATE_TOPIC
    ),
    "spark_structured_streaming": Recording(
        "spark-files", {"contract.yml": 0}, folders=("output", "checkpoint")
    ),
    "spark_direct_streams": Recording(
        "dstreams-offsets-first", {"contract.yml": 0}, tables=("plain", "ranges")
    ),
    "flink": Recording(
        "flink-expired", {"contract.yml": 0}, ("in", "out"), ("checkpoints",), is_undated=True
    ),
    "pulsar": Recording(
        "pulsar-sent-again",
        {"contract.yml": 0, "contract_at_least_once.yml": 1},
        topics=(),
        folders=("evidence/produced", "evidence/copy-1"),
    ),
    "activemq": Recording(
        "activemq-auto",
        {"contract.yml": 0},
        topics=(),
        folders=("produced", "output", "data/kahadb"),
    ),
    "storm_trident": Recording(
        "storm-trident-plain",
        {"contract.yml": 0, "contract_at_least_once.yml": 1},
        folders=("zookeeper",),
        tables=("entries",),
    ),
    "kafka_connect": Recording("connect-ranges-group", {"contract.yml": 0}, folders=("files",)),
}


def main(folder: Path, names: Sequence[str]) -> int:
    """Record the examples named, or all, and return 0.

    Raises:
        RuntimeError: where a fault could not be played.
    """
    with ExitStack() as stack:
        database = start_database(folder / "database", stack)
        os.environ[DATABASE] = database.url
        for name in names or RECORDINGS:
            _record(name, RECORDINGS[name], folder / name, database.url)
    return 0


def _record(name: str, recording: Recording, folder: Path, database: str) -> None:
    play(folder, [recording.play])
    text = json.loads((folder / "cases.json").read_text())
    if text["failures"]:
        raise RuntimeError(text["failures"][recording.play])
    cases = text["cases"][recording.play]
    over_at = max(
        datetime.fromisoformat(case["ended_at"]) + timedelta(seconds=case["seconds"]) for case in cases
    )
    time.sleep(max(0.0, (over_at - datetime.now(UTC)).total_seconds()))
    target = EXAMPLES / name
    shutil.rmtree(target, ignore_errors=True)
    _keep_evidence(recording, folder, target / "evidence", database)
    taken_at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    truth: dict[str, Any] = {"play": recording.play, "contracts": {}}
    for file, place in recording.contracts.items():
        case = cases[place]
        template = Template((_CONTRACTS / name / file).read_text())
        (target / file).write_text(template.substitute(seconds=case["seconds"], taken_at=taken_at))
        truth["contracts"][file] = {key: value for key, value in case.items() if key != "contract"}
        if recording.is_undated:
            truth["contracts"][file]["breaks"] = [_undated(found) for found in case["breaks"]]
    (target / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")


def _undated(found: dict[str, Any]) -> dict[str, Any]:
    """Return a break as it is found without the times of commits."""
    return {**found, "flags": [flag for flag in found["flags"] if flag != "COMMIT_AHEAD"]}


def _keep_evidence(recording: Recording, folder: Path, evidence: Path, database: str) -> None:
    """Copy what the engine, the senders and the broker left."""
    played = folder / recording.play
    if recording.topics:
        _keep_topics(recording, folder, evidence)
    for name in recording.folders:
        target = evidence / Path(name).name
        shutil.copytree(played / name, target, ignore=_NOT_EVIDENCE, copy_function=_copy_filled)
    schema = recording.play.replace("-", "_")
    for table in recording.tables:
        with psycopg2.connect(database) as connection, (evidence / f"{table}.csv").open("w") as file:
            place = sql.Identifier(schema, table)
            query = sql.SQL("copy (select * from {}) to stdout with (format csv, header)").format(place)
            connection.cursor().copy_expert(query, file)


def _copy_filled(source: str, target: str) -> None:
    """Copy a file; a log of ZooKeeper's without the 64 MB of zeros that it is filled up with."""
    content = Path(source).read_bytes()
    Path(target).write_bytes(content.rstrip(b"\0") if content.startswith(b"ZKLG") else content)


def _keep_topics(recording: Recording, folder: Path, evidence: Path) -> None:
    """Copy what the broker keeps of the topics, and what was sent to the first of them."""
    played, data = folder / recording.play, folder / "cluster" / "broker-1" / "data"
    topics = [f"{recording.play}-{role}" for role in recording.topics]
    for topic in (*topics, recording.positions):
        for place in data.glob(f"{topic}-[0-9]*"):
            if any(path.stat().st_size for path in place.glob("*.log")):
                _copy(place, evidence / "broker" / place.name, _BROKER_FILES)
    _copy(data, evidence / "broker", _BROKER_FILES)
    _copy(played / topics[0] / "produced", evidence / "produced", ("*.jsonl",))


def _copy(source: Path, target: Path, patterns: Sequence[str]) -> None:
    """Copy the files that a pattern matches."""
    target.mkdir(parents=True, exist_ok=True)
    for pattern in patterns:
        for path in source.glob(pattern):
            shutil.copy(path, target / path.name)


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]).absolute(), sys.argv[2:]))

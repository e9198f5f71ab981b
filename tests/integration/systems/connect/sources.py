"""Sources of a file's lines: their positions are kept by a worker, in a file or in a topic."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.contract import HASHED, UNTIL_READ, log_of
from tests.integration.kafka_faults.scene import Scene, breaks_of
from tests.integration.systems.connect.worker import (
    KILLED,
    Worker,
    distributed,
    offsets_file,
    offsets_topic,
    settings_of,
    standalone,
)
from tests.integration.systems.scene import Case, Expected, Stage
from tools.record.messages import fingerprint, message_ids, now_text, payload_of

_FIRST, _MORE = 10, 5
_INTERVAL_MS: Final = 5000
_LIFE: Final = "life.properties"
_EMPTIED: Final = "file truncated and written anew"
_RETOLD: Final = ("OUTPUT_DUPLICATE", "consumer or sink")


@dataclass
class Lines:
    """The file that a source reads, and the ledger of whoever appends lines to it: each with the byte it begins at."""

    path: Path
    ledger: Path
    _size: int = field(default=0)
    _count: int = field(default=0)
    _age: int = field(default=1)

    def append(self, prefix: str, count: int) -> list[list[Any]]:
        """Append so many lines, each a new message, and return partition, byte position and id of each."""
        places = []
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.ledger.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file, self.ledger.open("a") as ledger:
            for id_ in message_ids(prefix, self._count, count):
                attempted_at = now_text()
                file.write(payload_of(id_) + b"\n")
                ledger.write(json.dumps(self._row(id_, attempted_at), separators=(",", ":")) + "\n")
                places.append([0, self._size, id_])
                self._size += len(payload_of(id_)) + 1
                self._count += 1
        return places

    def truncate(self) -> str:
        """Empty the file in place, as a rotation with `copytruncate` does, and return when that was."""
        self.path.write_bytes(b"")
        self._size = 0
        self._age += 1
        return now_text()

    @property
    def size(self) -> int:
        """Return the byte behind the last line."""
        return self._size

    def _row(self, id_: str, attempted_at: str) -> dict[str, Any]:
        return {
            "producer_id": "writer",
            "producer_session": "writer-1",
            "sequence": self._count,
            "message_id": id_,
            "topic": str(self.path),
            "topic_id": f"file-{self._age}",
            "partition": 0,
            "offset": self._size,
            "payload_hash": fingerprint(payload_of(id_)),
            "attempted_at": attempted_at,
            "completed_at": now_text(),
            "outcome": "acked",
        }


def standalone_killed(stage: Stage) -> list[Case]:
    """A standalone worker forgets where it was since its last flush, and its file says nothing of when it was there."""
    lines, output = _lines(stage), _output(stage)
    places = lines.append(stage.name, _FIRST)
    worker = _run(stage, standalone(stage), lines, output)
    wait_until(lambda: _is_in(offsets_file(stage), lines.size), "the position in the worker's file")
    flushed = lines.size
    again = lines.append(stage.name, _MORE)
    output.end()
    wait_until(lambda: len(output.records()) == _FIRST + _MORE, "all lines in the topic")
    worker.kill()
    if not _is_in(offsets_file(stage), flushed):
        raise AssertionError("the worker had flushed its positions before it was killed")
    successor = _run(stage, standalone(stage), lines, output)
    wait_until(lambda: len(output.records()) == _FIRST + 2 * _MORE, "the lines again")
    wait_until(lambda: _is_in(offsets_file(stage), lines.size), "the position in the worker's file")
    successor.stop()
    classes = {"DELIVERED": len(places), "OUTPUT_DUPLICATE": _MORE}
    expected = Expected("BROKEN", classes, breaks_of(again, *_RETOLD))
    committed = {"source": {"kind": "connect_offsets", "path": str(offsets_file(stage)), "taken_at": "now"}}
    return [_case(stage, lines, output, KILLED, "standalone worker", committed, expected)]


def distributed_killed(stage: Stage) -> list[Case]:
    """Without exactly-once support a distributed worker, too, sends again what it sent since its last flush."""
    lines, output, again = _killed(stage, {}, {})
    classes = {"DELIVERED": _FIRST, "OUTPUT_DUPLICATE": _MORE}
    breaks = breaks_of(again, *_RETOLD, "process before commit")
    how = "distributed worker, exactly.once.source.support=disabled"
    committed = _topic(stage)
    return [
        _case(stage, lines, output, KILLED, how, committed, Expected("BROKEN", classes, breaks)),
        _case(
            stage, lines, output, KILLED, how, committed, Expected("KEPT", classes, breaks), "at_least_once"
        ),
    ]


def exact_killed(stage: Stage) -> list[Case]:
    """With it, what was sent since the last commit is aborted, and sent again."""
    exact = {
        "exactly.once.support": "required",
        "transaction.boundary": "interval",
        "transaction.boundary.interval.ms": _INTERVAL_MS,
    }
    lines, output, _ = _killed(stage, {"exactly_once_source_support": "enabled"}, exact)
    expected = Expected("KEPT", {"DELIVERED": _FIRST + _MORE})
    how = "distributed worker, exactly.once.source.support=enabled"
    return [_case(stage, lines, output, KILLED, how, _topic(stage), expected)]


def truncated(stage: Stage) -> list[Case]:
    """A source goes on at its position in a file that was emptied and begun anew, and passes over what stands below."""
    lines, output = _lines(stage), _output(stage)
    lines.append(stage.name, _FIRST)
    worker = _run(stage, distributed(stage), lines, output)
    _await_position(stage, lines.size)
    worker.stop()
    emptied_at = lines.truncate()
    lost = lines.append(stage.name, _FIRST)
    lines.append(stage.name, _MORE)
    successor = _run(stage, distributed(stage), lines, output)
    wait_until(lambda: len(output.records()) == _FIRST + _MORE, "the lines behind the position")
    _await_position(stage, lines.size)
    output.end()
    successor.stop()
    reported = {
        "topic_id": f"case when committed_at < timestamp '{emptied_at}' then 'file-1' else 'file-2' end"
    }
    breaks = breaks_of(lost, "LOST", "after the acknowledgement", flags=["COMMIT_AHEAD"])
    expected = Expected("BROKEN", {"DELIVERED": _FIRST + _MORE, "LOST": len(lost)}, breaks)
    committed = {**_topic(stage), "columns": reported}
    how = "distributed worker"
    case = _case(stage, lines, output, _EMPTIED, how, committed, expected, "at_least_once")
    contract = {name: value for name, value in case.contract.items() if name != "settings"}
    return [dataclasses.replace(case, contract=contract)]


PLAYS: Final = {
    "connect-source-standalone": standalone_killed,
    "connect-source-distributed": distributed_killed,
    "connect-source-exact": exact_killed,
    "connect-source-truncated": truncated,
}


def _killed(
    stage: Stage, worker: dict[str, object], connector: dict[str, object]
) -> tuple[Lines, Scene, list[Any]]:
    """Kill a distributed worker between two commits, start it again, and return what it sent twice."""
    lines, output = _lines(stage), _output(stage)
    lines.append(stage.name, _FIRST)
    first = _run(stage, distributed(stage, **worker), lines, output, connector)
    _await_position(stage, lines.size)
    flushed = lines.size
    again = lines.append(stage.name, _MORE)
    output.end()
    wait_until(lambda: len(output.records()) == _FIRST + _MORE, "all lines in the topic")
    first.kill()
    if _positions(stage)[-1] != flushed:
        raise AssertionError(f"expected the position {flushed}, found {_positions(stage)}")
    successor = _run(stage, distributed(stage, **worker), lines, output, connector)
    wait_until(lambda: len(output.records()) == _FIRST + 2 * _MORE, "the lines again")
    _await_position(stage, lines.size)
    successor.stop()
    return lines, output, again


def _run(
    stage: Stage, worker: Worker, lines: Lines, output: Scene, more: dict[str, object] | None = None
) -> Worker:
    """Have the worker read the file; each record says in a header which life of a worker sent it."""
    life = stage.folder / _LIFE
    life.write_text(f"life={worker.application.name}-{worker.application.process.pid}\n")
    worker.run(
        stage.name,
        {
            "connector.class": "FileStreamSource",
            "tasks.max": 1,
            "file": lines.path,
            "topic": output.name,
            "transforms": "life",
            "transforms.life.type": "org.apache.kafka.connect.transforms.InsertHeader",
            "transforms.life.header": "worker",
            "transforms.life.value.literal": f"${{file:{life}:life}}",
            **(more or {}),
        },
    )
    return worker


def _lines(stage: Stage) -> Lines:
    return Lines(stage.folder / "in.jsonl", stage.folder / "produced" / "writer.jsonl")


def _output(stage: Stage) -> Scene:
    return stage.topic("out", message_timestamp_type="LogAppendTime")


def _positions(stage: Stage) -> list[int]:
    """Return the positions that the worker's topic holds, oldest first."""
    return [
        json.loads(record.value)["position"]
        for batch in stage.cluster.log(1, offsets_topic(stage))
        if not batch.is_control
        for record in batch.records
        if record.value is not None
    ]


def _await_position(stage: Stage, position: int) -> None:
    def has_come() -> bool:
        batches = stage.cluster.log(1, offsets_topic(stage))
        found = _positions(stage)
        return (
            bool(found)
            and found[-1] == position
            and (batches[-1].is_control or not batches[-1].is_transactional)
        )

    wait_until(has_come, f"a position of {position}")


def _is_in(file: Path, position: int) -> bool:
    return file.exists() and f'{{"position":{position}}}'.encode() in file.read_bytes()


def _topic(stage: Stage) -> dict[str, Any]:
    place = {"segments": str(stage.data), "topic": offsets_topic(stage), "taken_at": "now"}
    return {"source": {"kind": "connect_offsets", **place}}


def _case(
    stage: Stage,
    lines: Lines,
    output: Scene,
    fault: str,
    how: str,
    committed: dict[str, Any],
    expected: Expected,
    guarantee: str = "exactly_once",
) -> Case:
    """Return the case of a topic that is the output of a file: its lines are the messages, and there is no log."""
    committed["source"]["connector"] = stage.name
    ledgers = {
        "produced": {
            "source": {"kind": "files", "format": "jsonl", "path": str(lines.ledger)},
            "coverage": {**UNTIL_READ, "producers": ["writer"], "sequences": "gapless"},
        },
        "delivered": {
            **log_of(stage.data, output.name),
            "columns": {
                **{name: value for name, value in HASHED.items() if name != "key_hash"},
                "processed_at": "source_timestamp",
                "consumer_id": "cast(filter(headers, h -> h.key = 'worker')[0].value as string)",
            },
        },
        "committed": committed,
    }
    case = stage.case(
        fault,
        how,
        output,
        ledgers,
        expected,
        group=stage.name,
        guarantee=guarantee,
        settings=settings_of(stage),
    )
    return dataclasses.replace(case, contract={**case.contract, "ledgers": ledgers})

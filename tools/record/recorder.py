"""Records the examples named, or all of them, one after the other; `python -m tools.record` starts it."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from string import Template

from tools.record.audit import contradictions
from tools.record.broker import start_broker
from tools.record.jars import Jars
from tools.record.processes import RecordingError
from tools.record.scenarios.base import Scenario
from tools.record.scenarios.clean_transactional import CleanTransactional
from tools.record.scenarios.commit_before_process import CommitBeforeProcess
from tools.record.scenarios.in_flight import InFlight
from tools.record.scenarios.process_before_commit import ProcessBeforeCommit
from tools.record.scenarios.retry_without_idempotence import RetryWithoutIdempotence
from tools.record.scene import Scene
from tools.record.timetable import Timetable, sleep_until
from tools.record.truth import write_truth

ROOT = Path(__file__).resolve().parents[2]
SCRATCH = ROOT / ".tieout" / "record"
JARS = Jars(ROOT / ".tieout" / "kafka")
EXAMPLES = ROOT / "examples"
TEMPLATES = Path(__file__).parent / "contracts"
SCENARIOS: dict[str, type[Scenario]] = {
    kind.name: kind
    for kind in (
        CleanTransactional,
        CommitBeforeProcess,
        RetryWithoutIdempotence,
        ProcessBeforeCommit,
        InFlight,
    )
}


def main() -> int:
    """Record and return the exit code: 0, or 1 if a recording could not be used."""
    parser = argparse.ArgumentParser(prog="make record", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(SCENARIOS)}")
    names = parser.parse_args().names or list(SCENARIOS)
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown:
        parser.error(f"no such example: {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for name in names:
        try:
            record(SCENARIOS[name]())
        except RecordingError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
    return 0


def record(scenario: Scenario) -> None:
    """Record one example and replace the previous recording.

    Raises:
        RecordingError: if the recording cannot be used; the previous one is then kept.
    """
    work = SCRATCH / scenario.name
    shutil.rmtree(work, ignore_errors=True)
    example = work / "example"
    evidence = example / "evidence"
    evidence.mkdir(parents=True)
    with ExitStack() as stack:
        _print_progress(scenario, "starting the broker")
        broker = start_broker(JARS, work / "broker", stack)
        broker.create_topic(scenario.topic, scenario.partitions)
        scenario.prepare(work, stack)
        scene = Scene(scenario.topic, scenario.group, broker, evidence, work, stack)
        timetable = _play(scenario, scene)
        _print_progress(scenario, f"evidence is taken at {timetable.extract_at:%T}, after the window's grace")
        sleep_until(timetable.extract_at)
        scene.extract(evidence)
        scenario.export(evidence)
        scenario.play_after_extract(scene, example / "evidence_later")
        _describe(scenario, scene, timetable, example)
    wrong = contradictions(example)
    if wrong:
        raise RecordingError("the evidence does not bear out the truth; record again: " + "; ".join(wrong))
    shutil.rmtree(EXAMPLES / scenario.name, ignore_errors=True)
    shutil.copytree(example, EXAMPLES / scenario.name)
    _print_progress(scenario, f"recorded in examples/{scenario.name}")


def _play(scenario: Scenario, scene: Scene) -> Timetable:
    timetable = Timetable.following(datetime.now(UTC))
    _print_progress(scenario, f"waiting for the window {timetable.start:%T} .. {timetable.end:%T}")
    sleep_until(timetable.open_at)
    _print_progress(scenario, "recording")
    scenario.play(scene)
    if datetime.now(UTC) > timetable.close_at:
        raise RecordingError("the recording did not fit into its window: this machine is busy; record again")
    return timetable


def _describe(scenario: Scenario, scene: Scene, timetable: Timetable, example: Path) -> None:
    """Write the contracts and the truth."""
    window = {"start": f"{timetable.start:%FT%TZ}", "end": f"{timetable.end:%FT%TZ}"}
    for contract in scenario.contracts:
        template = Template((TEMPLATES / scenario.name / contract).read_text())
        (example / contract).write_text(template.substitute(window))
    facts: dict[str, object] = {
        "example": scenario.name,
        "window": window,
        "group": scenario.group,
        "topic": scenario.topic,
        "partitions": scenario.partitions,
    }
    write_truth(example / "truth.json", facts, scenario.stages(scene))


def _print_progress(scenario: Scenario, text: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {scenario.name}: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

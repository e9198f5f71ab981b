"""The Spark job of one replay's plan: run → breaks → bodies → plan → files → result, top to bottom.

Started by the task `plan` of the DAG `tieout_replay` through spark-submit. All logic is in the package `tieout`; this
file only says in which order. It changes nothing but its own folder of files; exit 2 with an explained error otherwise.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from tieout import settings
from tieout.contracts import Contract
from tieout.engine.payloads import payloads_of
from tieout.engine.session import explained_spark_errors, stop, submitted_session
from tieout.errors import TieoutError
from tieout.replaying import Body, LostMessage, choose, plan_of
from tieout.replaying.describing import Subject, markdown, notes_on
from tieout.replaying.folder import read_breaks, target_of, write_plan
from tieout.spark_environment import take_handed_over
from tieout.store import Store


def main(argv: list[str]) -> int:
    """Plan the repair of one run's breaks; return the exit code."""
    # 1. What the task handed over, and the arguments: the contract by value, the run, and its statement.
    take_handed_over()
    arguments = _arguments(argv)
    contract = Contract.from_json(arguments.contract_json.read_text(encoding="utf-8"), arguments.base_dir)
    store = Store(settings.required_database_url())

    # 2. The run's breaks, which must still be those of its statement's folder.
    run, statement, breaks = read_breaks(store.run(arguments.run_id), arguments.statement)

    # 3. Which of them may be repaired, and were not before.
    chosen = choose(
        breaks,
        statement,
        contract,
        incident_id=arguments.incident_id,
        attempt=arguments.attempt,
        find_done=lambda keys: {
            key: f"{done.executed_at.isoformat(timespec='seconds')} by plan {done.plan_id}"
            for key, done in store.replayed(keys).items()
        },
    )

    # 4. The bodies of lost messages: the engine, where there is something to look for.
    accepts = contract.replay is not None and contract.replay.unverified_bodies == "accept"
    bodies = _bodies(contract, chosen.lost) if chosen.lost else {}
    plan = plan_of(chosen, bodies, accepts_unverified=accepts)

    # 5. The files, and the text that an approver reads.
    subject = Subject(contract, run.window, run.run_id, arguments.incident_id, target_of(contract))
    text = markdown(plan, subject, notes_on(contract, plan, store.replayed_breaks(plan.break_ids)))
    written = write_plan(plan, subject, text, arguments.output)

    # 6. The small result for the task that started the job.
    _say(f"plan {written['plan_id']}: {written['records']} to produce, {written['removals']} to remove")
    _write_result(written)
    return 0


def _bodies(contract: Contract, lost: tuple[LostMessage, ...]) -> dict[str, Body]:
    spark = submitted_session(f"tieout replay {contract.pipeline}", settings.jars(contract.connectors))
    try:
        return dict(payloads_of(spark, contract, lost, datetime.now(UTC)))
    finally:
        stop(spark)


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="replay.py", description=__doc__)
    parser.add_argument("--contract-json", type=Path, required=True, help="the contract, canonical JSON")
    parser.add_argument("--base-dir", type=Path, required=True, help="where its relative paths start")
    parser.add_argument("--run-id", required=True, help="the run whose breaks are repaired")
    parser.add_argument("--statement", type=Path, required=True, help="the folder of its statement")
    parser.add_argument("--incident-id", help="only the breaks of this incident")
    parser.add_argument("--attempt", type=int, default=1)
    parser.add_argument("--output", type=Path, required=True, help="the folder that takes the plans")
    return parser.parse_args(argv)


def _say(text: str) -> None:
    print(f"tieout: {text}", file=sys.stderr, flush=True)


def _write_result(result: dict[str, object]) -> None:
    path = settings.result_path()
    if path is not None:
        path.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    try:
        with explained_spark_errors():
            sys.exit(main(sys.argv[1:]))
    except TieoutError as error:
        _say(str(error))
        _write_result({"error": str(error), "is_temporary": error.is_temporary})
        sys.exit(2)

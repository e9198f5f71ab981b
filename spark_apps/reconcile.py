"""The Spark job of one window: contract → evidence → statement → files → store → result, top to bottom.

Started by the task `reconcile` of a pipeline's DAG through spark-submit. All logic is in the package `tieout`; this
file only says in which order. Exit 0 with a result file whatever the verdict; exit 2 with an explained error otherwise.
"""

from __future__ import annotations

import argparse
import json
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tieout import settings
from tieout.contracts import Contract
from tieout.engine.bundle.making import make_bundle
from tieout.engine.bundle.packing import DEFAULT_MB, BundleRequest
from tieout.engine.judging.warming import warm_up
from tieout.engine.reconciling import Reconciliation, reconcile
from tieout.engine.session import explained_spark_errors, stop, submitted_session
from tieout.engine.staging import break_lines, write_output
from tieout.errors import TieoutError
from tieout.model import Window
from tieout.reporting.page import render_html
from tieout.spark_environment import take_handed_over
from tieout.store import RunOrigin, Store


def main(argv: list[str]) -> int:
    """Reconcile one window and publish it; return the exit code."""
    # 1. What the task handed over, and the arguments: the contract by value, the window, and where results go.
    take_handed_over()
    arguments = _arguments(argv)
    contract = Contract.from_json(arguments.contract_json.read_text(encoding="utf-8"), arguments.base_dir)
    window = Window(arguments.start, arguments.end)
    store = Store(settings.required_database_url())

    # 2. The store is at this version's schema before any work is done for it.
    store.migrate()

    # 3. A session on whatever master the job was submitted to, and the Python that judges, started meanwhile.
    jars = settings.jars(contract.connectors)
    spark = submitted_session(f"tieout {contract.pipeline} {window.start.isoformat()}", jars)
    warm_up(spark)
    try:
        # 4. Evidence in, statement and breaks out: the engine.
        run_id, now = str(uuid.uuid4()), datetime.now(UTC)
        result = reconcile(spark, contract, window, run_id=run_id, now=now, progress=_say)

        # 5. The files for people and tools, replaced as a whole.
        write_output(result, arguments.output, render_html)

        # 6. The store, in one transaction.
        origin = RunOrigin(arguments.dag_id, arguments.dag_run_id, arguments.try_number)
        plain = json.loads(contract.to_json())
        published = store.publish(result.statement, break_lines(result.breaks), plain, origin)
        if not published.is_current:
            _say(f"stored, but not current: {published.reason}")

        # 7. The audit bundle, where the deployment keeps them: no verdict fails for it.
        if settings.keeps_bundles():
            _bundle(result, contract, settings.bundle_file(contract.pipeline, window.start, run_id))
    finally:
        stop(spark)

    # 8. A line for the log.
    _say(f"{result.statement['verdict']}: {'; '.join(result.statement['reasons']) or 'nothing to report'}")

    # 9. The small result for the task that started the job.
    _write_result(
        {
            "run_id": run_id,
            "verdict": result.statement["verdict"],
            "counts": _counts(result.statement),
            "output": str(arguments.output),
        }
    )
    return 0


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="reconcile.py", description=__doc__)
    parser.add_argument(
        "--contract-json", type=Path, required=True, help="the resolved contract, canonical JSON"
    )
    parser.add_argument(
        "--base-dir", type=Path, required=True, help="where the contract's relative paths start"
    )
    parser.add_argument("--from", dest="start", type=datetime.fromisoformat, required=True)
    parser.add_argument("--to", dest="end", type=datetime.fromisoformat, required=True)
    parser.add_argument("--output", type=Path, required=True, help="the folder of the window's statement")
    parser.add_argument("--dag-id")
    parser.add_argument("--dag-run-id")
    parser.add_argument("--try-number", type=int)
    return parser.parse_args(argv)


def _bundle(reconciliation: Reconciliation, contract: Contract, file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        bundle = make_bundle(
            reconciliation, contract, BundleRequest(file, DEFAULT_MB, has_contents=True), _say
        )
    except (TieoutError, OSError) as error:
        _say(f"no audit bundle: {error}")
    else:
        _say(f"written: {file}, digest {bundle.digest}")


def _counts(statement: dict[str, Any]) -> dict[str, int]:
    names = (
        "messages",
        "accepted",
        "delivered",
        "lost",
        "in_flight",
        "effects",
        "further_effects",
        "phantom_effects",
    )
    return {name: sum(row[name] for row in statement["partitions"]) for name in names}


def _say(text: str) -> None:
    print(f"tieout: {text}", file=sys.stderr, flush=True)


def _write_result(result: dict[str, Any]) -> None:
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

"""One example of each command and what its exit codes mean there, for `--help` and docs/reference/cli.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_HOUR: Final = "--from 2026-11-20T10:00:00Z --to 2026-11-20T11:00:00Z"

EXAMPLES: Final[Mapping[str, str]] = {
    "reconcile": f"tieout reconcile orders.yml {_HOUR} --output statement",
    "bundle": f"tieout bundle orders.yml {_HOUR} --output orders-10h.zip",
    "verify": "tieout verify orders-10h.zip",
    "watch": "tieout watch orders.yml --output statements",
    "init": "tieout init orders --guarantee at_least_once --produced sent.jsonl --delivered out.csv",
    "check": "tieout check dags/contracts",
    "trace": f"tieout trace orders.yml orders/0/17 {_HOUR}",
    "report": "tieout report --from 2026-11-01T00:00:00Z --to 2026-12-01T00:00:00Z --format markdown",
    "simulate": "tieout simulate examples/simulated/payments.yml --output simulated --seed 7",
    "score": "tieout score statement --truth simulated",
    "schema": "tieout schema statement",
    "completion": 'eval "$(tieout completion)"',
    "status": "tieout status orders",
    "breaks": "tieout breaks orders --incidents",
    "accept": 'tieout accept orders --incident INCIDENT_ID --until 7d --reason "INC-7: replayed on Friday"',
    "reopen": 'tieout reopen orders --incident INCIDENT_ID --reason "it was not replayed"',
    "annotate": 'tieout annotate orders --break BREAK_ID --reason "same rack as INC-3"',
    "silence": 'tieout silence orders --until 2h --reason "maintenance"',
    "check-run": "tieout check-run RUN_ID --data-docs data_docs",
    "airflow": "tieout airflow init /opt/airflow/dags",
    "doctor": "tieout doctor",
    "migrate": "tieout migrate",
}

_VERDICTS: Final = "0 kept, 1 broken, 2 usage or environment error, 3 unknown or pending"

EXITS: Final[Mapping[str, str]] = {
    "reconcile": _VERDICTS,
    "bundle": "0 written, whatever the verdict, 2 usage or environment error",
    "verify": "0 the same, 1 something differs, 2 it cannot be read",
    "watch": "that of the worst window: 1 broken, 2 one could not be judged, 3 unknown or pending, 0 kept",
    "init": "0 written, 2 usage or environment error",
    "check": "0 valid, 2 anything wrong",
    "trace": "0 found, 2 usage or environment error, 3 in no ledger",
    "report": "0 every window kept, 1 one broken, 2 usage or environment error, 3 unknown, pending or not judged",
    "simulate": "0 written, 2 usage or environment error",
    "score": "0 no difference, 1 differences, 2 usage or environment error",
    "schema": "0",
    "completion": "0",
    **dict.fromkeys(("status", "breaks"), "0 told, whatever is open, 2 usage or environment error"),
    **dict.fromkeys(
        ("accept", "reopen", "annotate", "silence"), "0 done, 2 usage or environment error, nothing changed"
    ),
    "check-run": "0 nothing is wrong, 1 a limit is broken, 2 usage or environment error, 3 it cannot be told",
    "airflow": "0 written, and nothing else is missing; 2 something is",
    "doctor": "0 nothing is missing, 2 something is",
    "migrate": "0 migrated, 2 usage or environment error",
}


def epilog_of(command: str) -> str:
    """Return the text below a command's options: its example, if any, and its exit codes."""
    example = f"example:\n  {EXAMPLES[command]}\n\n" if command in EXAMPLES else ""
    return f"{example}exit codes: {EXITS.get(command, _VERDICTS)}"

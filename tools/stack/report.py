"""The results of the demonstration: a table, and the list of differences from what was expected."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tieout.model import Verdict
from tools.stack.console import Steps
from tools.stack.driving import PipelineResult
from tools.stack.examples import Expected, Stage
from tools.stack.layout import Layout
from tools.stack.receiver import received

_SHOWN = {
    "messages": "messages",
    "delivered": "delivered",
    "lost": "lost",
    "further_effects": "duplicates",
    "in_flight": "in flight",
    "failed": "not sent",
    "unverifiable": "unverif.",
}


@dataclass(frozen=True)
class Row:
    """One pipeline at one stage: the expected and the actual result."""

    pipeline: str
    stage: str
    guarantee: str
    expected: Expected
    result: PipelineResult
    counts: Mapping[str, int]

    @property
    def verdict(self) -> str:
        """The final verdict, or a replacement if there is none."""
        if self.result.run is None:
            return "no result"
        return str(self.result.run.final_verdict or "unchecked")


@dataclass(frozen=True)
class Judged:
    """All rows, the received alerts, and the number of pending alerts."""

    rows: tuple[Row, ...]
    alerts: Path
    pending: int
    address: str


def row_of(expected: Expected, stage: Stage, result: PipelineResult) -> Row:
    """Return the row of a pipeline's result at a stage."""
    contract = expected.contract
    statement = result.run.statement if result.run else {}
    counts = total(statement.get("partitions", ()))
    return Row(contract.pipeline, stage.name, contract.guarantee.value, expected, result, counts)


def total(partitions: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the sums of a statement's counts over its partitions.

    >>> total([{"topic": "t", "messages": 3}, {"topic": "t", "messages": 4}])
    {'messages': 7}
    """
    sums: dict[str, int] = {}
    for partition in partitions:
        for name, value in partition.items():
            if isinstance(value, int) and name != "partition":
                sums[name] = sums.get(name, 0) + value
    return sums


def problems(judged: Judged) -> list[str]:
    """Return all differences from the recorder's truth; none if the demonstration succeeded."""
    differences: list[str] = []
    for row in judged.rows:
        at = f"{row.pipeline} ({row.stage})"
        if row.verdict != row.expected.verdict:
            differences.append(f"{at}: verdict {row.verdict}, expected {row.expected.verdict}{_reasons(row)}")
        state = "failed" if Verdict(row.expected.verdict).fails_the_run else "success"
        if row.result.dag_run_state != state:
            differences.append(f"{at}: Airflow's run ended as {row.result.dag_run_state}, expected {state}")
        differences += [
            f"{at}: {name} {row.counts.get(name)}, expected {count}"
            for name, count in row.expected.counts.items()
            if row.counts.get(name) != count
        ]
        if state == "failed" and row.expected.contract.alerts and not _alerts_of(judged, row.pipeline):
            differences.append(f"{at}: no alert was received")
    if judged.pending:
        differences.append(f"{judged.pending} alerts are still waiting to be sent")
    return differences


def lines(judged: Judged, layout: Layout, steps: Steps) -> list[str]:
    """Return the demonstration's report, line by line."""
    head = ("pipeline", "stage", "guarantee", "verdict", "expected", *_SHOWN.values())
    cells = [
        (
            *(row.pipeline, row.stage, row.guarantee, row.verdict, row.expected.verdict),
            *(str(row.counts.get(name, "-")) for name in _SHOWN),
        )
        for row in judged.rows
    ]
    alerts = received(judged.alerts)
    return [
        "",
        *_table(head, cells),
        "",
        "Why:",
        *(f"  {row.pipeline} ({row.stage}): {row.verdict}{_reasons(row)}" for row in judged.rows),
        "",
        "Statements (statement.html is for reading):",
        *sorted({f"  {path}" for path in layout.statements.glob("*/*/statement.html")}),
        "",
        f"Alerts received: {len(alerts)} (in {judged.alerts})",
        *(f"  {_alert_line(alert)}" for alert in alerts),
        "",
        f"Airflow's page was {judged.address}; `make up` starts it again with these runs in it.",
        f"Seconds: {steps.summary()}",
    ]


def _alerts_of(judged: Judged, pipeline: str) -> list[dict[str, Any]]:
    return [alert for alert in received(judged.alerts) if pipeline in json.dumps(alert["body"])]


def _alert_line(alert: Mapping[str, Any]) -> str:
    body = alert["body"]
    subject = body.get("subject") if isinstance(body, dict) else None
    return str(subject or json.dumps(body))[:160]


def _reasons(row: Row) -> str:
    reasons = row.result.run.reasons if row.result.run else ()
    return f": {'; '.join(reasons)}" if reasons else ""


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    body = list(rows)
    widths = [max(len(row[column]) for row in (head, *body)) for column in range(len(head))]
    lines = (head, tuple("─" * width for width in widths), *body)
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]

"""Transactions committed, aborted and torn by a killed producer; read_committed; PostgreSQL as the sink."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tools.record.log_ledger import transaction_states
from tools.record.messages import message_ids
from tools.record.postgres import Database, start_database
from tools.record.processes import RecordingError
from tools.record.scenarios.base import Scenario
from tools.record.scenarios.counting import Sent
from tools.record.scene import Scene
from tools.record.truth import Expectation, Stage

_SIZE = 25
"""Messages per transaction."""


def _transactions(
    prefix: str, first: int, count: int, retried: set[int], abandoned: set[int]
) -> list[dict[str, Any]]:
    """Return a plan of `count` transactions: some aborted and sent again immediately, some only aborted."""
    plan: list[dict[str, Any]] = []
    for number in range(count):
        ids = message_ids(prefix, (first + number) * _SIZE, _SIZE)
        if number in retried | abandoned:
            plan.append({"ids": ids, "end": "abort"})
        if number not in abandoned:
            plan.append({"ids": ids, "end": "commit"})
    return plan


_TORN = message_ids("web", 20 * _SIZE, _SIZE)
_WEB_1 = [*_transactions("web", 0, 20, retried={4, 11}, abandoned={8}), {"ids": _TORN, "end": "die"}]
_WEB_2 = [{"ids": _TORN, "end": "commit"}, *_transactions("web", 21, 22, retried={6}, abandoned={13})]
_APP_1 = _transactions("app", 0, 42, retried={3, 17, 30}, abandoned={9, 25})


class CleanTransactional(Scenario):
    """KEPT: aborted transactions occupy offsets, and the output has every committed message once."""

    name = "clean_transactional"
    topic = "orders"
    group = "orders-loader"

    def __init__(self) -> None:
        self._database: Database | None = None

    def prepare(self, work: Path, stack: ExitStack) -> None:
        """Start the PostgreSQL for the output."""
        self._database = start_database(work / "postgres", stack)

    def play(self, scene: Scene) -> None:
        """Run three producer sessions, one killed in a transaction, and a consumer that is killed once."""
        if self._database is None:
            raise RecordingError("the scenario needs its database: call prepare first")
        sink = {"kind": "table", "url": self._database.url}
        app = scene.producer("app", 1, _APP_1, rate=60, transactional_id="orders-app")
        web = scene.producer("web", 1, _WEB_1, rate=60, transactional_id="orders-web")
        fault = {"after": 500, "at_least": 20}
        consumer = scene.consumer(1, "process_then_commit", sink=sink, fault=fault)
        consumer.wait_for("fault_point")
        consumer.kill()
        consumer = scene.consumer(2, "process_then_commit", sink=sink)
        web.wait_for("fault_point")
        web.kill()
        web = scene.producer("web", 2, _WEB_2, rate=60, transactional_id="orders-web")
        for producer in (web, app):
            producer.wait_for("done")
        scene.wait_until_read()
        consumer.finish()

    def export(self, folder: Path) -> None:
        """Copy the output's table into a file."""
        if self._database is None:
            raise RecordingError("the scenario needs its database: call prepare first")
        self._database.export(folder / "order_received.csv")

    def stages(self, scene: Scene) -> tuple[Stage, ...]:
        """Every message of a committed transaction was delivered once; the rest was never sent."""
        sent = Sent.by(_WEB_1, _WEB_2, _APP_1)
        positions = scene.visible_positions()
        if set(positions) != sent.accepted or any(len(places) != 1 for places in positions.values()):
            raise RecordingError(
                "the log's committed records are not the messages of the committed transactions"
            )
        _check_isolation(scene)
        expectation = Expectation(
            verdict="KEPT",
            counts=sent.counts(),
            classes={"DELIVERED": len(sent.accepted), "NOT_SENT": len(sent.not_sent)},
            not_sent=tuple(sent.not_sent),
        )
        return (Stage("recorded", {"contract.yml": expectation}),)


def _check_isolation(scene: Scene) -> None:
    """Verify that read_committed hides aborted records on this broker, and that there are some.

    Raises:
        RecordingError: if a reader of either isolation level receives anything else.
    """
    data = set()
    visible = set()
    for number, batches in scene.broker.log(scene.topic).items():
        states = transaction_states(batches)
        offsets = [record.offset for batch in batches if not batch.is_control for record in batch.records]
        data |= {(number, offset) for offset in offsets}
        visible |= {(number, offset) for offset in offsets if states[offset] == "committed"}
    if scene.broker.positions_read(scene.topic, "read_uncommitted") != data or data == visible:
        raise RecordingError("a read_uncommitted reader should be handed aborted records too, and was not")
    if scene.broker.positions_read(scene.topic, "read_committed") != visible:
        raise RecordingError("a read_committed reader was not handed exactly the committed records")

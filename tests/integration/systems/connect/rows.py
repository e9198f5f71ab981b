"""A sink of rows in PostgreSQL: it inserts, upserts, or refuses some of the records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final
from urllib.parse import urlsplit

import psycopg2
from psycopg2 import sql
from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.contract import HASHED, UNTIL_READ, committed_of, log_of
from tests.integration.kafka_faults.scene import Scene, breaks_of
from tests.integration.systems.connect.worker import (
    COLUMNS,
    KILLED,
    await_commit,
    group_of,
    hold_to,
    settings_of,
    sink,
    standalone,
)
from tests.integration.systems.scene import Case, Expected, Stage

_SENT: Final = 10
_REFUSED: Final = "-00000[37]"
"""Which messages the sink refuses: the fourth and the eighth."""


def inserted(stage: Stage) -> list[Case]:
    """What was inserted since the last commit is inserted again."""
    source, again = _killed(stage, "insert")
    breaks = breaks_of(again, "OUTPUT_DUPLICATE", "consumer or sink", "process before commit")
    classes = {"DELIVERED": _SENT, "OUTPUT_DUPLICATE": _SENT}
    broken, kept = Expected("BROKEN", classes, breaks), Expected("KEPT", classes, breaks)
    return [
        _case(stage, source, KILLED, "insert.mode=insert", broken),
        _case(stage, source, KILLED, "insert.mode=insert", kept, guarantee="at_least_once"),
    ]


def upserted(stage: Stage) -> list[Case]:
    """A row whose key is the record's position is written twice, and is there once."""
    source, _ = _killed(stage, "upsert")
    expected = Expected("KEPT", {"DELIVERED": 2 * _SENT})
    how = "insert.mode=upsert, keyed by position"
    return [_case(stage, source, KILLED, how, expected, output="keyed by position")]


def refused(stage: Stage) -> list[Case]:
    """What a sink refuses is in its dead letter queue; without one it is in no output, and nobody is told."""
    queue = stage.topic("dead")
    source, places = _refused(
        stage,
        errors_deadletterqueue_topic_name=queue.name,
        errors_deadletterqueue_topic_replication_factor=1,
        errors_deadletterqueue_context_headers_enable="true",
    )
    wait_until(lambda: len(queue.records()) == len(places), "the refused records in the queue")
    dead = {**log_of(stage.data, queue.name), "columns": {**_ORIGIN, "message_id": HASHED["message_id"]}}
    kept = Expected("KEPT", {"DELIVERED": _SENT - len(places), "DEAD_LETTERED": len(places)})
    how = "errors.tolerance=all with a dead letter queue"
    lost = Expected(
        "BROKEN",
        {"DELIVERED": _SENT - len(places), "LOST": len(places)},
        breaks_of(places, "LOST", "consumer", flags=["COMMIT_AHEAD"]),
    )
    return [
        _case(stage, source, _POISON, how, kept, more={"dead_letters": dead}, output="keyed by position"),
        _case(stage, source, _POISON, "the same, the queue in no ledger", lost, output="keyed by position"),
    ]


def dropped(stage: Stage) -> list[Case]:
    """What a sink refuses without a queue is in no output, and its position is committed."""
    source, places = _refused(stage, errors_log_enable="true")
    classes = {"DELIVERED": _SENT - len(places), "LOST": len(places)}
    expected = Expected("BROKEN", classes, breaks_of(places, "LOST", "consumer", flags=["COMMIT_AHEAD"]))
    return [
        _case(
            stage,
            source,
            _POISON,
            "errors.tolerance=all, errors.log.enable=true",
            expected,
            guarantee="at_least_once",
        ),
    ]


_POISON: Final = "records that the sink refuses"
_ORIGIN: Final = {
    "topic": "cast(filter(headers, h -> h.key = '__connect.errors.topic')[0].value as string)",
    "partition": "cast(cast(filter(headers, h -> h.key = '__connect.errors.partition')[0].value as string) as int)",
    "offset": "cast(cast(filter(headers, h -> h.key = '__connect.errors.offset')[0].value as string) as bigint)",
}
"""Where a record of the queue stood, as Connect's headers say it."""

PLAYS: Final = {
    "connect-table-insert": inserted,
    "connect-table-upsert": upserted,
    "connect-dead-letters": refused,
    "connect-no-dead-letters": dropped,
}


def _killed(stage: Stage, mode: str) -> tuple[Scene, list[Any]]:
    """Kill the worker between two commits, start it again, and return what it wrote a second time."""
    source = stage.topic("in")
    settings = _table(stage, source, insert_mode=mode)
    source.send(_SENT)
    worker = standalone(stage)
    worker.run(stage.name, settings)
    await_commit(stage, _SENT)
    again = source.send(_SENT, session="sender-2")
    source.end()
    wait_until(lambda: _count(stage) == 2 * _SENT, "all rows")
    worker.kill()
    hold_to(stage, _SENT)
    successor = standalone(stage)
    successor.run(stage.name, settings)
    await_commit(stage, 2 * _SENT)
    successor.stop()
    return source, again


def _refused(stage: Stage, **queue: object) -> tuple[Scene, list[Any]]:
    """Have the sink go over all records, and return those that it refused."""
    source = stage.topic("in")
    worker = standalone(stage)
    settings = _table(stage, source, insert_mode="upsert", refused=_REFUSED, errors_tolerance="all", **queue)
    places = source.send(_SENT)
    source.end()
    worker.run(stage.name, settings)
    await_commit(stage, _SENT)
    worker.stop()
    return source, [place for place in places if re.search(_REFUSED, place[-1])]


def _table(stage: Stage, source: Scene, **settings: object) -> dict[str, Any]:
    return sink(
        "TableSink",
        source.name,
        connection_url=_jdbc(stage.database),
        table_name=_name(stage),
        pause_ms=20,
        **settings,
    )


def _jdbc(url: str) -> str:
    """Return a libpq URL as PostgreSQL's JDBC driver wants it."""
    parts = urlsplit(url)
    place = f"{parts.hostname}:{parts.port}{parts.path}"
    return f"jdbc:postgresql://{place}?user={parts.username}&password={parts.password}"


def _name(stage: Stage) -> str:
    return stage.name.replace("-", "_")


def _count(stage: Stage) -> int:
    with closing(psycopg2.connect(stage.database)) as connection, connection.cursor() as cursor:
        cursor.execute(sql.SQL("select count(*) from {}").format(sql.Identifier(_name(stage))))
        (count,) = cursor.fetchone() or (0,)
    return int(count)


def _case(
    stage: Stage,
    source: Scene,
    fault: str,
    how: str,
    expected: Expected,
    *,
    guarantee: str = "exactly_once",
    more: Mapping[str, Any] | None = None,
    **said: str,
) -> Case:
    ledgers = {
        "delivered": {
            "source": {"kind": "jdbc", "connection": "systems", "table": _name(stage)},
            "columns": COLUMNS,
            "coverage": UNTIL_READ,
        },
        "committed": committed_of(stage.data, group_of(stage)),
        **(more or {}),
    }
    return stage.case(
        fault,
        how,
        source,
        ledgers,
        expected,
        group=group_of(stage),
        guarantee=guarantee,
        settings=settings_of(stage, **said),
    )

"""The targets of replays: a table or a topic. Each message arrives once, however often a replay is repeated.

Docs: docs/how-to/replay-lost-messages.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from tieout.brokers.cluster import Cluster
from tieout.brokers.producing import Outgoing, produce_once
from tieout.contracts import ORIGINAL_TOPIC, ReplayTarget
from tieout.errors import ConnectionNotFoundError
from tieout.orchestration.alerting import airflow_connection
from tieout.orchestration.connections import export_connections
from tieout.orchestration.receivers import ConnectionLike
from tieout.replaying import Record
from tieout.store.replay_target import insert_once, target_database

_PASSED_ON: Final = ("sslmode", "sslrootcert", "sslcert", "sslkey", "options")


def write_records(plan: Mapping[str, Any], to: ReplayTarget, records: Sequence[Record]) -> int:
    """Write a plan's records to the contract's target, and return how many were new there.

    Raises:
        StoreError: where the database is out of reach or refuses.
        SourceError: where the cluster is out of reach or refuses.
        ConnectionNotFoundError: where the connection is not defined, or for a table is none to PostgreSQL.
    """
    if to.topic is not None:
        return _publish(plan, to.connection, to.topic, records)
    found = airflow_connection(to.connection)
    database = target_database(to.connection, _parameters(to.connection, found))
    return insert_once(database, str(to.table), plan["plan_id"], records)


def _publish(plan: Mapping[str, Any], connection: str, topic: str, records: Sequence[Record]) -> int:
    """Produce the records. None can have been produced before the end of their window, which is judged after it."""
    export_connections([connection])
    return produce_once(
        Cluster.of(connection, "replay.to"),
        f"tieout-replay-{plan['pipeline']}",
        [_outgoing(record, topic) for record in records],
        datetime.fromisoformat(plan["end"]),
    )


def _outgoing(record: Record, topic: str) -> Outgoing:
    """Return the record as it is produced; in a topic other than its own, its key decides the partition."""
    message, body = record.message, record.body
    is_own = topic == ORIGINAL_TOPIC
    return Outgoing(
        message.key,
        str(message.topic) if is_own else topic,
        message.partition if is_own else None,
        body.key,
        body.value,
        tuple((name, None if value is None else value.encode()) for name, value in body.headers),
    )


def _parameters(name: str, found: ConnectionLike) -> dict[str, Any]:
    """Return a connection as libpq's parameters.

    Raises:
        ConnectionNotFoundError: where it is none to PostgreSQL.
    """
    if found.conn_type not in ("postgres", "postgresql"):
        raise ConnectionNotFoundError(
            f"connection {name}: expected one to PostgreSQL, found the type {found.conn_type or '(none)'}"
        )
    extra: dict[str, Any] = {key: found.extra_dejson[key] for key in _PASSED_ON if key in found.extra_dejson}
    return {
        "host": found.host,
        "port": found.port,
        "user": found.login,
        "password": found.password,
        "dbname": found.schema,
        **extra,
    }

"""Sending the alerts in the outbox, through Airflow's connections.

At least once: an alert is marked as sent after its receiver accepted it. If the sender dies in between, the alert is
sent again with the same idempotency key.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tieout.errors import ConnectionNotFoundError
from tieout.orchestration.emailing import send_email
from tieout.orchestration.incident_alerting import enqueue_incident_alerts
from tieout.orchestration.receivers import ConnectionLike, Refusal, receiver_of, send
from tieout.store import ClaimedAlert, Store

LEASE: Final = timedelta(minutes=5)
"""Longer than all tries of one alert can take."""

TIME_LIMIT: Final = timedelta(minutes=3)
"""How long one delivery runs; remaining alerts wait for the next."""

PAUSES: Final = (1.0, 3.0)
"""Seconds before each retry where the receiver refused at once; after them the alert waits in the outbox."""

_log: Final = logging.getLogger(__name__)

FindConnection = Callable[[str], ConnectionLike]


@dataclass(frozen=True)
class DeliveryReport:
    """Counts of one delivery; `waiting` are the alerts still to be sent, now or later."""

    sent: int
    failed: int
    given_up: int
    waiting: int


def airflow_connection(name: str) -> ConnectionLike:
    """Return a connection of Airflow's; where the tasks run, it knows secrets backends too.

    Raises:
        ConnectionNotFoundError: where there is none, or it cannot be read. Airflow's message may quote the
            connection, and is not passed on.
    """
    from airflow.sdk import BaseHook  # noqa: PLC0415 - the sender works without Airflow too

    try:
        found: ConnectionLike = BaseHook.get_connection(name)
    except Exception as error:
        raise ConnectionNotFoundError(
            f"connection {name}: expected an Airflow connection, found {type(error).__name__}; define it in "
            f"Airflow or as AIRFLOW_CONN_{name.upper()}"
        ) from None
    return found


def deliver(
    store: Store,
    pipeline: str | None = None,
    *,
    find: FindConnection = airflow_connection,
    time_limit: timedelta = TIME_LIMIT,
) -> DeliveryReport:
    """Store alerts about changed incidents, send the due alerts of one pipeline or all, and return the counts.

    A refusal by a receiver is no error here: the alert waits in the outbox, longer each time, or is given up.

    Raises:
        StoreError: where the outbox cannot be read or written.
    """
    enqueue_incident_alerts(store, pipeline)
    ends_at = time.monotonic() + time_limit.total_seconds()
    sent = failed = given_up = 0
    while time.monotonic() < ends_at and (claimed := store.claim_alerts(1, LEASE, pipeline)):
        refusal = _sent(claimed[0], find)
        if refusal is None:
            store.mark_sent(claimed[0])
            sent += 1
        else:
            is_given_up = store.mark_failed(claimed[0], refusal.reason, is_permanent=refusal.is_permanent)
            failed += not is_given_up
            given_up += is_given_up
        _log_outcome(claimed[0], refusal)
    return DeliveryReport(sent, failed, given_up, store.pending_alerts(pipeline))


def _sent(claimed: ClaimedAlert, find: FindConnection) -> Refusal | None:
    """Send one alert, with quick retries where they cost nothing, and return the last refusal, if any.

    A missing or incomplete connection can be repaired, so the alert waits for that.
    """
    try:
        connection = find(claimed.alert.connection)
        if claimed.alert.to == "email":
            return send_email(claimed.alert, connection)
        receiver = receiver_of(claimed.alert, connection)
    except ConnectionNotFoundError as error:
        return Refusal(str(error), is_permanent=False)
    refusal = send(claimed.alert, receiver)
    for pause in PAUSES:
        if refusal is None or not refusal.is_quick:
            break
        time.sleep(pause)
        refusal = send(claimed.alert, receiver)
    return refusal


def _log_outcome(claimed: ClaimedAlert, refusal: Refusal | None) -> None:
    alert = claimed.alert
    if refusal is None:
        _log.info("alert %s (%s) sent over connection %s", claimed.alert_id, alert.kind, alert.connection)
        return
    _log.warning(
        "alert %s (%s) not taken over connection %s at attempt %s: %s",
        claimed.alert_id,
        alert.kind,
        alert.connection,
        claimed.attempt,
        refusal.reason,
    )

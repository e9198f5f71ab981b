"""Sending an alert as an e-mail, through Airflow's SMTP hook and connection.

The connection is Airflow's own kind `smtp`; its extra fields hold `from_email` and, for Tieout, `to`: one address or
several, separated by commas. Docs: docs/reference/alerts.md.
"""

from __future__ import annotations

import html
import smtplib

from tieout.errors import ConnectionNotFoundError
from tieout.model import Alert
from tieout.orchestration.receivers import ConnectionLike, Refusal, bounded_try, idempotency_key, require_type


def recipients_of(alert: Alert, connection: ConnectionLike) -> str:
    """Return the recipients of the alert's connection.

    Raises:
        ConnectionNotFoundError: where it has no recipients or no sender, or is no connection to a mail server.
    """
    require_type(alert, connection)
    extra = connection.extra_dejson
    found = extra.get("to")
    recipients = ", ".join(found) if isinstance(found, list) else str(found or "")
    if "@" not in recipients or not extra.get("from_email"):
        raise ConnectionNotFoundError(
            f"connection {alert.connection}: expected the extra fields `to` and `from_email` with e-mail addresses, "
            "found no such pair; docs/reference/alerts.md says what a connection for email holds"
        )
    return recipients


def body_of(alert: Alert) -> str:
    """Return the message as HTML, with the alert's text escaped."""
    lines = [alert.payload.get("text"), alert.payload.get("page")]
    text = "\n".join(str(line) for line in lines if line)
    return f"<pre>{html.escape(text)}</pre>"


def send_email(alert: Alert, connection: ConnectionLike) -> Refusal | None:
    """Send the alert once and return why it was not taken, or None where it was; takes 20 s at most.

    Raises:
        ConnectionNotFoundError: where the connection lacks recipients or a sender.
    """
    to = recipients_of(alert, connection)
    return bounded_try(lambda: _sent(alert, to))


def _sent(alert: Alert, to: str) -> Refusal | None:
    from airflow.providers.smtp.hooks.smtp import SmtpHook  # noqa: PLC0415 - only where e-mail is used

    try:
        with SmtpHook(smtp_conn_id=alert.connection) as hook:
            hook.send_email_smtp(
                to=to,
                subject=str(alert.payload.get("subject")),
                html_content=body_of(alert),
                custom_headers={
                    "X-Idempotency-Key": idempotency_key(alert),
                    "Auto-Submitted": "auto-generated",
                },
            )
    except smtplib.SMTPResponseException as error:
        # The server's text may quote addresses or credentials, so only its code is shown.
        return Refusal(f"SMTP {error.smtp_code}", is_permanent=error.smtp_code >= 500)
    except Exception as error:
        # Every error of the hook is a refusal, and its text may hold secrets.
        return Refusal(f"cannot be sent: {type(error).__name__}", is_permanent=False)
    return None

"""Whether a row took place: an effect, a poll, a dead letter (taxonomy section 1, Effects)."""

from __future__ import annotations

from tests.oracle.history import History, Row

from tieout.model import Ledger


def certainty(row: Row, rows: list[Row], has_state: bool, needs_key: bool) -> str:
    """Return `ok`, `unknown` or `failed`: whether an output row is an effect (taxonomy section 1, Effects).

    `has_state`: the source has a `transaction_state`, so that a transaction without one is unresolved. `needs_key`: an
    effect has a key, and one that does not say it may be any (70).
    """
    outcome = row.get("outcome") or "ok"
    state = row.get("transaction_state")
    transaction = row.get("transaction_id")
    if transaction is not None and has_state and state not in ("committed", "aborted"):
        stated = {
            other.get("transaction_state") for other in rows if other.get("transaction_id") == transaction
        }
        state = next((one for one in ("committed", "aborted") if one in stated), "open")
    if outcome == "failed" or state == "aborted":
        return "failed"
    is_keyless = needs_key and row.get("effect_key") is None
    return "unknown" if outcome == "unknown" or state == "open" or is_keyless else "ok"


def poll_outcome(history: History, read: Row) -> str:
    """Return what came of the poll that handed over the record: ok, unknown or failed."""
    has_state = history.has_column(Ledger.READ, "transaction_state")
    return certainty(read, history.rows(Ledger.READ), has_state, needs_key=False)


def handed(history: History, reads: list[Row]) -> list[Row]:
    """Return the reads whose poll is known to have succeeded."""
    return [row for row in reads if poll_outcome(history, row) == "ok"]

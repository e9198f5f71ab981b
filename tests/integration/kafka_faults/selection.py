"""Which faults a run strikes: those of every run, or all of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Final

IN_EVERY_RUN: Final = ("commit-first", "transactions", "unclean")
"""One of a consumer, of transactions, of brokers: each judgement is a Spark job, and costs seconds."""
OTHERS: Final = (
    *("write-first", "worker-queue", "open-transaction", "compacted", "cooperative", "eager"),
    *("reset-to-earliest", "reset-to-latest", "group-deleted", "recreated", "recreated-when-read", "overrun"),
    *("stopped-plain", "stopped-idempotent", "sent-again", "acks-one", "acks-all", "acks-none", "clean"),
    *("torn", "torn-unanswered", "torn-replicated"),
)
"""What `make faults` strikes and judges besides."""
ALL: Final = IN_EVERY_RUN + OTHERS
VARIABLE: Final = "TIEOUT_FAULTS"
"""`all` strikes all of them; `none` leaves them out, where there is no Maven."""
IS_LEFT_OUT: Final = os.environ.get(VARIABLE) == "none"
IS_WHOLE: Final = os.environ.get(VARIABLE) == "all"
TOPICS: Final = ALL if IS_WHOLE else IN_EVERY_RUN


def requested_values(items: Iterable[Any], parameter: str) -> set[str]:
    """Return the values that this parameter has in the tests that want faults played.

    Faults of brokers and those of engines share the fixture's name, and each have a parameter of their own.
    """
    asking = [item.callspec.params for item in items if "played" in getattr(item, "fixturenames", ())]
    return {params[parameter] for params in asking if parameter in params}

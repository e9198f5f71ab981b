"""Which faults a run strikes: those of every run, or all of them."""

from __future__ import annotations

import os
from typing import Final

IN_EVERY_RUN: Final = (
    *("commit-first", "write-first", "transactions", "compacted", "cooperative"),
    *("stopped-plain", "stopped-idempotent", "acks-one", "acks-all", "unclean", "torn"),
)
"""At least one fault of each kind, and what survives it; a judgement costs seconds."""
OTHERS: Final = (
    *("worker-queue", "open-transaction", "reset-to-earliest", "reset-to-latest", "group-deleted"),
    *("recreated", "recreated-when-read", "overrun", "eager", "sent-again", "acks-none", "clean"),
    *("torn-unanswered", "torn-replicated"),
)
"""What `make faults` strikes and judges besides."""
VARIABLE: Final = "TIEOUT_FAULTS"
"""`all` strikes all of them; `none` leaves them out, at a desk without Maven."""
IS_LEFT_OUT: Final = os.environ.get(VARIABLE) == "none"
ALL: Final = IN_EVERY_RUN + OTHERS
TOPICS: Final = ALL if os.environ.get(VARIABLE) == "all" else IN_EVERY_RUN

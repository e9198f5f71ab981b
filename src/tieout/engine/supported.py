"""What the engine can judge, so that the rest is refused early; without Spark, so that checking is quick."""

from __future__ import annotations

from tieout.contracts import Contract
from tieout.errors import UsageError


def refuse_unsupported(contract: Contract) -> None:
    """Refuse what a contract may say and this engine cannot judge, rather than judge something else.

    Raises:
        UsageError: naming the field, what is supported, and what was found.
    """
    if contract.windows != "time":
        raise UsageError(
            f"{contract.pipeline}: windows: {contract.windows} cannot be judged yet; supported: time"
        )

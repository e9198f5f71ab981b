"""Refuses a window that is not cut as its contract says, before Spark starts."""

from __future__ import annotations

from tieout.contracts import Contract
from tieout.errors import UsageError
from tieout.model import Window


def refuse_other_windows(contract: Contract, window: Window) -> None:
    """Refuse a window of time where the contract cuts by offsets, and ranges of offsets where it cuts by time.

    Raises:
        UsageError: with the field, what it expects, and what was found.
    """
    is_by_offsets = contract.windows == "offsets"
    if is_by_offsets and not window.offsets:
        raise UsageError(
            f"{contract.pipeline}: windows: offsets: expected the ranges to judge, such as --offsets orders/0/0-1000 "
            "of tieout reconcile, found none; a schedule has no ranges"
        )
    if window.offsets and not is_by_offsets:
        raise UsageError(
            f"{contract.pipeline}: windows: time: expected no ranges of offsets, found {window.offsets[0]}; "
            "windows: offsets in the contract judges ranges"
        )

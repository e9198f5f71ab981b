"""What the commands need of the engine, so that they can be tried, and told, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from tieout.contracts import Contract
from tieout.model import Ledger, Window

Progress = Callable[[str], None]
RenderHtml = Callable[[dict[str, Any], list[dict[str, Any]]], str]
Message = str | tuple[str, int, int]
"""A message's id, or its topic, partition and offset."""


@dataclass(frozen=True)
class Sighting:
    """What one ledger shows of a message: its first rows, their number, and how far the ledger reaches."""

    rows: tuple[dict[str, Any], ...]
    total: int
    complete_until: datetime | None


@dataclass(frozen=True)
class Order:
    """What to judge or look at, and what to label the result with."""

    contract: Contract
    window: Window
    run_id: str
    now: datetime


class Engine(Protocol):
    """Judges windows and follows messages."""

    def reconcile(
        self, order: Order, output: Path, render_html: RenderHtml, progress: Progress
    ) -> Mapping[str, Any]:
        """Write the window's output directory, and return its statement."""

    def follow(self, order: Order, message: Message, progress: Progress) -> Mapping[Ledger, Sighting]:
        """Return what each ledger shows of a message."""

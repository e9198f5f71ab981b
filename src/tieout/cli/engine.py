"""What the commands need of the engine, so that they can be tried, and told, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from tieout.contracts import Contract
from tieout.model import Window
from tieout.reporting.trace import Asked

Progress = Callable[[str], None]
RenderHtml = Callable[[dict[str, Any], list[dict[str, Any]]], str]


@dataclass(frozen=True)
class Order:
    """What to judge, and what to label the result with."""

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

    def follow(
        self, contract: Contract, window: Window | None, asked: Asked, progress: Progress
    ) -> Mapping[str, Any]:
        """Return the trace of what is asked for, judged where a window is given."""

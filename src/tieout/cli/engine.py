"""What the commands need of the engine, so that they can be tried, and told, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from tieout.contracts import Contract
from tieout.engine.bundle.packing import Wanted
from tieout.model import Window
from tieout.reporting.trace import Asked

Progress = Callable[[str], None]
RenderHtml = Callable[[dict[str, Any], list[dict[str, Any]]], str]


@dataclass(frozen=True)
class Order:
    """What to judge, what to label the result with, and the audit bundle to make of it, if any."""

    contract: Contract
    window: Window
    run_id: str
    now: datetime
    bundle: Wanted | None = None


@dataclass(frozen=True)
class Bundled:
    """A window that was judged into a bundle: its statement, the bundle's digest and its bytes."""

    statement: Mapping[str, Any]
    digest: str
    size: int


class Engine(Protocol):
    """Judges windows and follows messages."""

    def reconcile(
        self, order: Order, output: Path, render_html: RenderHtml, progress: Progress
    ) -> Mapping[str, Any]:
        """Write the window's output directory, and its bundle if one is asked for; return its statement."""

    def bundle(self, order: Order, wanted: Wanted, progress: Progress) -> Bundled:
        """Judge the window into a bundle alone."""

    def follow(
        self, contract: Contract, window: Window | None, asked: Asked, progress: Progress
    ) -> Mapping[str, Any]:
        """Return the trace of what is asked for, judged where a window is given."""

"""The interface between the commands and the engine; tests and `--help` work without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from tieout.contracts import Contract
from tieout.engine.bundle.packing import BundleRequest
from tieout.model import Window
from tieout.reporting.trace import TraceRequest

Progress = Callable[[str], None]
RenderHtml = Callable[[dict[str, Any], list[dict[str, Any]]], str]


@dataclass(frozen=True)
class Order:
    """The contract and window to judge, the run's id and time, and the audit bundle to write, if any."""

    contract: Contract
    window: Window
    run_id: str
    now: datetime
    bundle: BundleRequest | None = None


@dataclass(frozen=True)
class Bundled:
    """A written bundle: its statement, digest and size in bytes."""

    statement: Mapping[str, Any]
    digest: str
    size: int


class Engine(Protocol):
    """Judges windows and traces messages."""

    def reconcile(
        self, order: Order, output: Path, render_html: RenderHtml, progress: Progress
    ) -> Mapping[str, Any]:
        """Write the window's output directory, and its bundle if requested; return the statement."""

    def bundle(self, order: Order, request: BundleRequest, progress: Progress) -> Bundled:
        """Judge the window and write its bundle only."""

    def follow(
        self, contract: Contract, window: Window | None, request: TraceRequest, progress: Progress
    ) -> Mapping[str, Any]:
        """Return the trace of the requested messages, judged if a window is given."""

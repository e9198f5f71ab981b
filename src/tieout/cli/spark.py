"""The engine on local Spark, in a session that lives as long as one command."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from pyspark.sql import SparkSession

from tieout import settings
from tieout.cli.engine import Bundled, Order, Progress, RenderHtml
from tieout.cli.java import java_messages_kept, require_java
from tieout.cli.java_classes import ClassArchive
from tieout.contracts import Contract
from tieout.engine.bundle.making import make_bundle
from tieout.engine.bundle.packing import BundleRequest
from tieout.engine.judging.warming import warm_up
from tieout.engine.reconciling import Reconciliation, reconcile
from tieout.engine.session import explained_spark_errors, local_session, stop
from tieout.engine.staging import write_output
from tieout.engine.tracing import trace
from tieout.model import Window
from tieout.readiness.files import size_of
from tieout.reporting.trace import TraceRequest


class SparkEngine:
    """Judges windows and traces messages with the Spark installed in Tieout's environment.

    `session` opens a session for a contract; by default a local one, which ends with the command.
    """

    def __init__(
        self, session: Callable[[Contract, Progress], AbstractContextManager[SparkSession]] | None = None
    ) -> None:
        self._session = session or _session

    def reconcile(
        self, order: Order, output: Path, render_html: RenderHtml, progress: Progress
    ) -> Mapping[str, Any]:
        """Write the window's output directory, and its bundle if requested; return the statement."""
        with self._reconciled(order, progress) as reconciliation:
            progress(f"writing {output}")
            write_output(reconciliation, output, render_html)
            if order.bundle is not None:
                bundled = make_bundle(reconciliation, order.contract, order.bundle, progress)
                progress(f"written: {order.bundle.file}, digest {bundled.digest}")
            return reconciliation.statement

    def bundle(self, order: Order, request: BundleRequest, progress: Progress) -> Bundled:
        """Judge the window and write its bundle only."""
        with self._reconciled(order, progress) as reconciliation:
            bundled = make_bundle(reconciliation, order.contract, request, progress)
            return Bundled(reconciliation.statement, bundled.digest, bundled.size)

    @contextmanager
    def _reconciled(self, order: Order, progress: Progress) -> Iterator[Reconciliation]:
        with self._session(order.contract, progress) as spark:
            yield reconcile(
                spark, order.contract, order.window, run_id=order.run_id, now=order.now, progress=progress
            )

    def follow(
        self, contract: Contract, window: Window | None, request: TraceRequest, progress: Progress
    ) -> Mapping[str, Any]:
        """Return the trace of the requested messages, judged if a window is given."""
        with self._session(contract, progress) as spark:
            return trace(spark, contract, window, request, now=datetime.now(UTC), progress=progress)


@contextmanager
def _session(contract: Contract, progress: Progress) -> Iterator[SparkSession]:
    archive = ClassArchive.of(require_java())
    progress("starting Spark")
    memory = {settings.DRIVER_MEMORY: settings.driver_memory()}
    with java_messages_kept() as messages:

        def started(java_options: str) -> SparkSession:
            return local_session(
                "tieout",
                settings.jars(contract.connectors),
                evidence_bytes=size_of(contract),
                java_messages=messages,
                java_options=java_options,
            )

        with settings.defined(memory):
            spark, draft = archive.started(started)
        warm_up(spark)
        _heed_interrupts()
        with explained_spark_errors():
            try:
                yield spark
            finally:
                stop(spark)
        if draft is not None:
            archive.finish(draft, progress)


def _heed_interrupts() -> None:
    """Let Ctrl-C interrupt the command: PySpark's own handler calls Java during another call, and both fail."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, without Py4J's log messages about the call that was cut off."""
    logging.disable()
    signal.default_int_handler(number, frame)

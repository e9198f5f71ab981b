"""Ctrl-C while Spark works."""

from __future__ import annotations

import logging
import signal
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from tieout.cli import spark as under_test


def test_an_interrupt_is_an_interrupt_while_spark_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark puts a handler of its own in place, which fails amid a call, with a traceback."""
    before = signal.getsignal(signal.SIGINT)

    def handler_of_pyspark(_number: int, _frame: FrameType | None) -> None:
        raise RuntimeError

    def session(*_: Any, **__: Any) -> SimpleNamespace:
        signal.signal(signal.SIGINT, handler_of_pyspark)
        return SimpleNamespace(stop=lambda: None, sparkContext=SimpleNamespace(_accumulatorServer=None))

    monkeypatch.setattr(under_test, "local_session", session)
    monkeypatch.setattr(under_test, "require_java", lambda: None)
    contract: Any = SimpleNamespace(connectors=frozenset(), ledgers={})

    try:
        with pytest.raises(KeyboardInterrupt), under_test._session(contract, lambda _: None):
            signal.raise_signal(signal.SIGINT)
        assert not logging.getLogger("py4j").isEnabledFor(logging.CRITICAL), "its tracebacks are nobody's"
    finally:
        logging.disable(logging.NOTSET)
        signal.signal(signal.SIGINT, before)

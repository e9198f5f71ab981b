"""The examples in docstrings hold."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path
from typing import Final

import pytest

SOURCES: Final = Path(__file__).parents[2] / "src"
MODULES: Final = sorted(
    ".".join(file.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
    for file in SOURCES.rglob("*.py")
    if ">>> " in file.read_text(encoding="utf-8")
)


def test_there_are_examples() -> None:
    """An empty folder must not look like agreement."""
    assert len(MODULES) > 100


@pytest.mark.parametrize("name", MODULES)
def test_examples_hold(name: str) -> None:
    """Each module that shows an example is run as its reader would."""
    found = doctest.testmod(importlib.import_module(name))

    assert found.attempted
    assert not found.failed

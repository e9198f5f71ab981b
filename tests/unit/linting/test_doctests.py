"""The examples in the linter's docstrings hold."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from tieout.linting import catalogue, declaring, defaults, naming, pipeline, placeholders, valuing, versions
from tieout.linting.reading import entries, lines, profiles, templates

MODULES = (
    catalogue, declaring, defaults, naming, pipeline, placeholders, valuing, versions, entries, lines, profiles,
    templates,
)  # fmt: skip


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_doctests(module: ModuleType) -> None:
    """Each module has examples, and they are true."""
    found = doctest.testmod(module)

    assert found.attempted
    assert not found.failed

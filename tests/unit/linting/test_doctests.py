"""The examples in the linter's docstrings hold."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from tieout.linting import declaring, defaults, files, versions


@pytest.mark.parametrize("module", [declaring, defaults, files, versions], ids=lambda module: module.__name__)
def test_doctests(module: ModuleType) -> None:
    """Each module has examples, and they are true."""
    found = doctest.testmod(module)

    assert found.attempted
    assert not found.failed

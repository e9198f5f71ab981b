"""The examples in the store's docstrings are true."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from tieout.store import connecting, covering, outbox, sql, storable


@pytest.mark.parametrize("module", [connecting, covering, outbox, sql, storable])
def test_the_examples_in_docstrings_are_true(module: ModuleType) -> None:
    """Each of these modules has an example, and it holds."""
    found = doctest.testmod(module)

    assert found.attempted > 0
    assert found.failed == 0

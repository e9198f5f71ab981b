"""Which tests one process runs, where several run them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import TOGETHER, ByFile

ROOT = Path(__file__).resolve().parents[2]


def _group(nodeid: str) -> str:
    return ByFile.__new__(ByFile)._split_scope(nodeid)


@pytest.mark.parametrize("folder", TOGETHER)
def test_files_that_share_a_start_go_to_one_process(folder: str) -> None:
    """What they share is started once: each process would start it anew."""
    files = sorted((ROOT / folder).glob("test_*.py"))

    assert len(files) > 1
    assert {_group(f"{folder}{file.name}::test[a/b]") for file in files} == {folder}


def test_other_files_go_by_themselves() -> None:
    """A folder whose name begins alike is another one."""
    assert _group("tests/unit/test_verdicts.py::test[x]") == "tests/unit/test_verdicts.py"
    assert _group("tests/integration/systems_x/test_a.py::test") == "tests/integration/systems_x/test_a.py"

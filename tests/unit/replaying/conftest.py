"""A contract with `replay`, whose fields a test may change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tieout.contracts import Contract, load_contract

_CONTRACT = """
version: 1
pipeline: orders
guarantee: exactly_once
group: loader
ledgers:
  produced:
    source: {kind: files, format: jsonl, path: produced.jsonl}
    coverage: declared
  delivered:
    source: {kind: files, format: jsonl, path: delivered.jsonl}
    coverage: declared
replay:
  value: body
  key: customer
"""


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Contract]:
    """Make the contract, with fields changed."""

    def made(**changes: Any) -> Contract:
        file = tmp_path / "orders.yml"
        file.write_text(yaml.safe_dump({**yaml.safe_load(_CONTRACT), **changes}))
        return load_contract(file)

    return made

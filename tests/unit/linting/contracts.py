"""Contracts for the linter's tests, from a guarantee and settings alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tieout.contracts import Contract
from tieout.linting import Finding, findings

FILES = {"kind": "files", "format": "jsonl", "path": "x.jsonl"}


def contract(
    settings: dict[str, Any], guarantee: str = "exactly_once", base: Path | None = None, **fields: Any
) -> Contract:
    """Return a contract with these settings, its relative paths starting at `base`."""
    ledgers = {name: {"source": FILES} for name in ("produced", "delivered")}
    values = {
        "version": 1,
        "pipeline": "p",
        "guarantee": guarantee,
        "group": "g",
        "ledgers": ledgers,
        **fields,
    }
    made = Contract.model_validate({**values, "settings": settings})
    return made.located_in(base) if base else made


def lint(folder: Path, section: str, file: str, text: str, **given: Any) -> dict[str, Finding]:
    """Return the findings about a part whose settings stand in a file, by rule."""
    (folder / file).write_text(text, encoding="utf-8")
    guarantee = given.pop("guarantee", "exactly_once")
    return {f.rule: f for f in findings(contract({section: {"file": file, **given}}, guarantee, base=folder))}

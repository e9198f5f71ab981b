"""The linter on the recordings' contracts: what really went wrong is among what it says can go wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tieout.contracts import load_contract
from tieout.linting import contradictions, findings
from tieout.linting.findings_text import findings_text
from tieout.linting.reference import linter_page
from tieout.model import Severity
from tieout.verdicts import Effect, effect_of

REPOSITORY = Path(__file__).parents[3]
CONTRACTS = sorted(REPOSITORY.glob("examples/*/contract*.yml"))
NAMES = [f"{file.parent.name}/{file.name}" for file in CONTRACTS]


@pytest.mark.parametrize("file", CONTRACTS, ids=NAMES)
def test_a_recorded_fault_is_found_in_the_settings(file: Path) -> None:
    """Each break that the guarantee forbids has a finding that names its class and its cause, critical."""
    contract = load_contract(file)
    truth = json.loads((file.parent / "truth.json").read_text())
    breaks = [
        each for stage in truth["stages"] for each in stage["contracts"][file.name]["breaks"] if each["cause"]
    ]
    faults = {(b["class"], b["cause"]) for b in breaks if effect_of(contract, b["class"]) is Effect.BROKEN}

    found = findings(contract)
    named = {
        (name.value, f.cause.value)
        for f in found
        if f.cause and f.severity is Severity.CRITICAL
        for name in f.classes
    }

    assert faults <= named
    assert bool(faults) == (truth["stages"][0]["contracts"][file.name]["verdict"] == "BROKEN")
    if not faults:
        assert {f.severity for f in found} <= {Severity.INFO}


@pytest.mark.parametrize("file", CONTRACTS, ids=NAMES)
def test_no_recording_contradicts_its_contract(file: Path) -> None:
    """The recorder's clients ran with the settings that the contracts declare."""
    contract = load_contract(file)
    truth = json.loads((file.parent / "truth.json").read_text())

    for stage in truth["stages"]:
        breaks = stage["contracts"][file.name]["breaks"]
        incidents = [
            {**b, "breaks": 1, "locus": b["locus"], "cause": b["cause"] or "unknown"} for b in breaks
        ]
        assert contradictions(contract, {"incidents": incidents}) == ()


def test_the_published_page_is_current() -> None:
    """Written by `python -m tieout.linting.reference > docs/reference/linter.md`."""
    assert (REPOSITORY / "docs/reference/linter.md").read_text() == linter_page()


def test_the_how_to_shows_what_is_printed() -> None:
    """Every finding of every example stands in the how-to as `tieout check` prints it."""
    page = (REPOSITORY / "docs/how-to/lint-a-pipeline.md").read_text()

    assert CONTRACTS
    for file in CONTRACTS:
        text = findings_text(findings(load_contract(file)))
        assert text
        assert text in page, f"{file.parent.name}/{file.name}: {text}"

"""The truth's form: what an expectation says, and one finding a line."""

from __future__ import annotations

import json
from pathlib import Path

from tools.record.scenarios.counting import Sent
from tools.record.truth import Expectation, Finding, Stage, write_truth

LOST = Finding(
    "LOST", "a-000007", "readings", 2, (31,), "consumer", "commit before process", ("COMMIT_AHEAD",)
)
DOUBLED = Finding("OUTPUT_DUPLICATE", "a-000008", "readings", 0, (4, 9), "producer → broker")
BROKEN = Expectation("BROKEN", {"messages": 3}, {"DELIVERED": 1, "LOST": 1}, (LOST, DOUBLED))


def _written(folder: Path, *stages: Stage) -> str:
    path = folder / "truth.json"
    write_truth(path, {"example": "readings"}, stages)
    return path.read_text()


def test_a_finding_names_its_first_position_and_all(tmp_path: Path) -> None:
    """`offset` is the first of `offsets`, and the class goes by the name `class`."""
    document = json.loads(_written(tmp_path, Stage("recorded", {"contract.yml": BROKEN})))

    lost, doubled = document["stages"][0]["contracts"]["contract.yml"]["breaks"]
    assert (lost["class"], lost["partition"], lost["offset"], lost["flags"]) == (
        "LOST",
        2,
        31,
        ["COMMIT_AHEAD"],
    )
    assert (doubled["offset"], doubled["offsets"], doubled["cause"]) == (4, [4, 9], None)


def test_flags_are_counted_over_the_breaks(tmp_path: Path) -> None:
    """A flag's count is that of the findings which carry it."""
    document = json.loads(_written(tmp_path, Stage("recorded", {"contract.yml": BROKEN})))

    assert document["stages"][0]["contracts"]["contract.yml"]["flags"] == {"COMMIT_AHEAD": 1}


def test_another_contract_changes_the_verdict_alone() -> None:
    """The same evidence under another contract has the same breaks."""
    kept = BROKEN.with_verdict("KEPT")

    assert kept.verdict == "KEPT"
    assert kept.breaks == BROKEN.breaks


def test_a_finding_stands_on_one_line(tmp_path: Path) -> None:
    """A re-recorded example's diff shows messages, not brackets."""
    text = _written(tmp_path, Stage("recorded", {"contract.yml": BROKEN}))

    assert [line for line in text.splitlines() if "a-000007" in line and "a-000008" not in line]


def test_resends_and_failed_transactions_are_counted() -> None:
    """An aborted attempt that is sent again is a resend; one that never is was not sent."""
    plan = [
        {"ids": ["x", "y"], "end": "abort"},
        {"ids": ["x"], "end": "commit"},
        {"ids": ["z"], "end": "die"},
        {"ids": ["z"], "end": "commit"},
    ]

    sent = Sent.by(plan)

    assert sent.not_sent == {"y"}
    counts = sent.counts()
    assert (counts["attempts"], counts["acked_attempts"], counts["failed_attempts"]) == (5, 2, 3)
    assert (counts["messages"], counts["resends"], counts["accepted"], counts["failed"]) == (3, 2, 2, 1)


def test_effects_after_the_window_are_not_the_windows() -> None:
    """A message read later is delivered, while its effect counts elsewhere."""
    counts = Sent.by([{"ids": ["x", "y", "z"], "end": "flush"}]).counts(after_window=2)

    assert (counts["delivered"], counts["effects"], counts["first_effects"]) == (3, 1, 1)

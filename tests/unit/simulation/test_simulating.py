"""A simulation as a whole: repeatable, complete, and nothing in it but what its parts did."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from tests.simulation.running import described, run

from tieout.contracts import load_contract
from tieout.errors import UsageError
from tieout.model import Ledger
from tieout.simulation.folder import FILES, write_simulation

ALL = {"all": 0.002}
WIDE = [{"name": "orders", "partitions": 8}, {"name": "prices", "partitions": 2, "cleanup_policy": "compact"}]


def quiet(_step: str) -> None:
    """Tell nothing."""


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    """And another seed does not."""
    description = described(messages=4_000, rate=80, topics=WIDE, faults=ALL)

    for name, seed in (("one", 7), ("again", 7), ("other", 8)):
        write_simulation(description, seed, tmp_path / name, quiet)

    files = sorted(file.name for file in (tmp_path / "one").iterdir())
    assert set(files) <= FILES
    same = {
        name: (tmp_path / "one" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
        for name in files
    }
    assert all(same.values()), same
    assert (tmp_path / "one/truth.jsonl").read_bytes() != (tmp_path / "other/truth.jsonl").read_bytes()


def test_the_contract_and_the_summary_fit_the_ledgers(tmp_path: Path) -> None:
    """The contract loads and names each ledger that has rows; the truth has as many lines as breaks."""
    summary = write_simulation(
        described(messages=4_000, rate=80, topics=WIDE, faults=ALL), 1, tmp_path / "out", quiet
    )

    contract = load_contract(tmp_path / "out" / "contract.yml")

    assert {f"{ledger.value}.jsonl" for ledger in contract.ledgers} <= {
        file.name for file in (tmp_path / "out").iterdir()
    }
    assert summary == json.loads((tmp_path / "out" / "truth.json").read_text())
    assert len((tmp_path / "out" / "truth.jsonl").read_text().splitlines()) == summary["breaks"]
    assert sum(summary["dispositions"].values()) == summary["messages"] == 4_000


def test_a_clean_run_is_a_pipeline_at_work(tmp_path: Path) -> None:
    """Sequences and offsets have no gap, each message is sent, read and output once, and every record is committed."""
    made = run(tmp_path, described())

    sessions = defaultdict(list)
    for row in made.rows[Ledger.PRODUCED]:
        sessions[row["producer_session"]].append(row["sequence"])
    assert all(sequences == list(range(len(sequences))) for sequences in sessions.values())
    offsets = defaultdict(list)
    for row in made.rows[Ledger.LOG]:
        if "offset" in row:
            offsets[row["topic"], row["partition"]].append(row["offset"])
    assert offsets.keys() == {("orders", 0), ("orders", 1), ("prices", 0)}
    assert all(found == list(range(len(found))) for found in offsets.values())
    for ledger in (Ledger.PRODUCED, Ledger.READ, Ledger.DELIVERED):
        counts = Counter(row["message_id"] for row in made.rows[ledger])
        assert len(counts) == 300
        assert set(counts.values()) == {1}
    latest = {
        (row["topic"], row["partition"]): row["committed_offset"] for row in made.rows[Ledger.COMMITTED]
    }
    assert latest == {place: len(found) for place, found in offsets.items()}


def test_a_key_stays_in_its_partition(tmp_path: Path) -> None:
    """As a partitioner sees to."""
    made = run(tmp_path, described())
    places = defaultdict(set)
    for row in made.rows[Ledger.PRODUCED]:
        places[row["key_hash"]].add((row["topic"], row["partition"]))
    keyless = places.pop(None)

    assert len(places) > 3
    assert all(len(found) == 1 for found in places.values())
    assert all(topic == "orders" for topic, _ in keyless)


def test_faults_without_room_are_refused(tmp_path: Path) -> None:
    """Rather than left out, or told on top of each other."""
    with pytest.raises(
        UsageError, match=r"faults\.\w+: no room for it in \d+ fitting partitions of \d+ batches"
    ):
        run(tmp_path, described(faults={"all": 1.0}))


def test_a_folder_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    """A simulation that fails leaves the former one, and nothing beside it."""
    write_simulation(described(), 1, tmp_path / "out", quiet)
    before = (tmp_path / "out" / "truth.json").read_text()

    with pytest.raises(UsageError):
        write_simulation(described(faults={"all": 1.0}), 1, tmp_path / "out", quiet)

    assert (tmp_path / "out" / "truth.json").read_text() == before
    assert [file.name for file in tmp_path.iterdir()] == ["out"]

"""The description of a simulation: what it refuses, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tieout.errors import ContractError, UsageError
from tieout.simulation.description import Description, load_description
from tieout.simulation.faults import FAULTS

DESCRIPTION = """\
version: 1
pipeline: payments
guarantee: exactly_once
messages: 1000
rate: 100
topics:
  - {name: payments, partitions: 4}
producers:
  - {name: checkout, kind: idempotent}
faults: {all: 0.01}
"""
REPOSITORY = Path(__file__).parents[3]


def loaded(folder: Path, text: str) -> Description:
    """Return the description in the text, loaded from a file."""
    file = folder / "payments.yml"
    file.write_text(text)
    return load_description(file)


def test_all_chooses_what_the_pipeline_can_have(tmp_path: Path) -> None:
    """Without a plain producer nothing is written twice, without a compacted topic nothing is compacted."""
    rates = loaded(tmp_path, DESCRIPTION).rates

    assert set(rates) < set(FAULTS)
    assert rates["process_before_commit"] == 0.01
    assert not {"retry_without_idempotence", "compacted_before_read", "transaction_torn"} & set(rates)


def test_a_fault_may_be_left_out_of_all(tmp_path: Path) -> None:
    """A rate of its own outweighs that of all, and 0 is never."""
    text = DESCRIPTION.replace("{all: 0.01}", "{all: 0.01, output_late: 0.5, output_doubled: 0}")

    rates = loaded(tmp_path, text).rates

    assert rates["output_late"] == 0.5
    assert "output_doubled" not in rates


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("rate: 100", "rte: 100", "payments.yml:5: rte: unknown field; did you mean rate?"),
        ("partitions: 4", "partition: 4", ":7: topics.0.partition: unknown field; did you mean partitions?"),
        ("all: 0.01", "output_lat: 0.01", ":10: faults.output_lat: unknown fault; did you mean output_late?"),
        ("all: 0.01", "output_late: 2", "payments.yml:10: faults.output_late: "),
        ("rate: 100", "rate: 10000", ":5: rate: expected at most 200 messages a second and partition, which is 800"),
        ("messages: 1000", "messages: 10", "payments.yml:4: messages: expected at least 8 a partition, which is 32"),
        ("rate: 100", "rate: 1", "payments.yml: max_latency: expected at least two rounds of "),
        ("kind: idempotent", "kind: idempotant", "did you mean idempotent?"),
        (
            "all: 0.01",
            "transaction_torn: 0.01",
            ":10: faults.transaction_torn: cannot strike this pipeline: it takes a producer of kind transactional",
        ),
        (
            "all: 0.01",
            "compacted_before_read: 0.01",
            "faults.compacted_before_read: cannot strike this pipeline: it takes a topic with cleanup_policy: compact",
        ),
        (
            "  - {name: checkout, kind: idempotent}",
            "  - {name: a, kind: plain}\n  - {name: a, kind: plain}",
            "producers.1.name: a is also the name of another; names are unique",
        ),
    ],
)  # fmt: skip
def test_an_error_names_file_line_and_field(tmp_path: Path, old: str, new: str, error: str) -> None:
    """A description is refused as a contract is."""
    with pytest.raises(ContractError) as refused:
        loaded(tmp_path, DESCRIPTION.replace(old, new))

    assert error in str(refused.value)


def test_the_number_of_messages_can_be_replaced(tmp_path: Path) -> None:
    """The rules hold for the new number, too."""
    description = loaded(tmp_path, DESCRIPTION)

    assert description.with_messages(5_000).messages == 5_000
    with pytest.raises(UsageError, match="at least 8 a partition"):
        description.with_messages(3)
    with pytest.raises(UsageError, match="--messages 0: expected a number greater than or equal to 1"):
        description.with_messages(0)


def test_the_example_can_have_every_fault() -> None:
    """`make score` promises all of them."""
    example = load_description(REPOSITORY / "examples" / "simulated" / "payments.yml")

    assert set(example.rates) == set(FAULTS)


def test_the_day_to_backfill_lasts_a_day() -> None:
    """It is backfilled from midnight to midnight, and its faults are so rare that each strikes once."""
    day = load_description(REPOSITORY / "examples" / "simulated" / "day.yml")

    assert day.messages / day.rate == 24 * 3600
    assert len(day.rates) == 3
    assert max(day.rates.values()) * day.rounds * day.partitions < 1


def test_the_page_lists_every_fault() -> None:
    """Name and purpose as the code has them, and none that the code has not."""
    page = (REPOSITORY / "docs" / "reference" / "simulation.md").read_text()
    tables = page[page.index("## The faults") : page.index("## The files")]
    listed = [line for line in tables.splitlines() if line.startswith("| `")]

    assert sorted(listed) == sorted(f"| `{fault.name}` | {fault.purpose} |" for fault in FAULTS.values())

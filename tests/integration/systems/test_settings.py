"""The linter on the files that the engines were started with: what breaks is a finding, what is kept is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.integration.systems.selection import SELECTED, system_of

from tieout.contracts import load_contract
from tieout.linting import findings
from tieout.model import Severity

pytestmark = pytest.mark.timeout(1_800)
PLAYS = [
    play
    for play in SELECTED
    if (system_of(play) == "connect" and play != "connect-source-truncated")
    or play in ("flink-expired", "flink-not-expired", "flink-at-least-once", "flink-exactly-once")
    or play in ("pulsar-sent-again", "pulsar-deduplicated", "pulsar-unacknowledged", "pulsar-keyed")
    or play in ("share-before", "share-after", "share-unacknowledged", "share-outlived")
    or play in ("activemq-jms-receive", "activemq-jms-listener")
    or play in ("activemq-auto", "activemq-client-individual", "activemq-expiry")
    or play in ("pulsar-expired", "pulsar-order-shared", "pulsar-order-key-shared")
    or play
    in ("storm-at-least-once", "storm-at-most-once", "storm-no-ackers", "storm-acker", "storm-timeout-short")
    or play in ("storm-trident-plain", "storm-trident-opaque", "storm-trident-transactional")
    or play in ("storm-trident-mixed", "storm-trident-grown")
]
"""Those whose applications have settings that a fault can be told from: that of a cut file has none."""


@pytest.mark.parametrize("play", PLAYS)
def test_what_breaks_was_a_finding_and_what_is_kept_was_none(
    play: str, played: Path, truth: dict[str, Any], tmp_path: Path
) -> None:
    """Of every case whose contract declares the worker's and the connector's own files, under its guarantee."""
    assert play not in truth["failures"], truth["failures"].get(play)
    cases = [case for case in truth["cases"][play] if "settings" in case["contract"]]
    assert cases
    for case in cases:
        file = tmp_path / "contract.yml"
        file.write_text(json.dumps(case["contract"], indent=1))

        found = [one for one in findings(load_contract(file)) if one.severity is not Severity.INFO]

        assert bool(found) == (case["verdict"] == "BROKEN"), (case["configuration"], found)
        broken = {name for name in case["classes"] if name != "DELIVERED"}
        assert not found or broken & {str(name) for one in found for name in one.classes}

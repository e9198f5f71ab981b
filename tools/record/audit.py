"""Compares an example's evidence with its truth by reading the files directly: no Spark, no Tieout.

A recording whose evidence contradicts the recorder's knowledge, or was late by accident, is not used.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

MAX_LATENCY = timedelta(seconds=10)
"""The contracts' limit, counted from a record's creation, which is stricter than the acknowledgement."""


@dataclass(frozen=True)
class Effect:
    """One row of the output, or one record read if there is no output."""

    message_id: str
    partition: int
    offset: int
    at: datetime


def contradictions(example: Path) -> list[str]:
    """Return a line for each difference between an example's evidence and its truth."""
    truth = json.loads((example / "truth.json").read_text())
    lines = []
    for stage in truth["stages"]:
        files = evidence_files(example, stage["overlay"])
        effects = tuple(_effects(files))
        created = _creation_times(files)
        for contract, expected in stage["contracts"].items():
            place = f"{example.name}/{contract} ({stage['stage']})"
            lines += [f"{place}: {problem}" for problem in _disagreements(expected, effects, created)]
    return lines


def evidence_files(example: Path, overlay: str | None) -> dict[str, Path]:
    """Return a stage's files by their path below `evidence/`; an overlay's replace the first ones."""
    folders = [example / "evidence", *([example / overlay] if overlay else [])]
    return {str(file.relative_to(folder)): file for folder in folders for file in sorted(folder.rglob("*.*"))}


def _disagreements(
    expected: Mapping[str, Any], effects: tuple[Effect, ...], created: Mapping[tuple[int, int], datetime]
) -> Iterator[str]:
    counts = Counter(effect.message_id for effect in effects)
    expected_effects = _effects_expected(expected, set(counts))
    different = sorted(id_ for id_ in expected_effects if counts[id_] != expected_effects[id_])
    if different:
        yield f"{len(different)} messages have not the effects they should, such as {different[:3]}"
    with_effect = sum(count > 0 for count in expected_effects.values())
    if with_effect != expected["counts"]["delivered"]:
        yield f"expected {expected['counts']['delivered']} messages with an effect, found {with_effect}"
    first: dict[str, Effect] = {}
    for effect in effects:
        if (effect.partition, effect.offset) not in created:
            yield f"an effect of {effect.message_id} names a position that the log has not"
        first.setdefault(effect.message_id, effect)
        first[effect.message_id] = min(first[effect.message_id], effect, key=lambda effect: effect.at)
    expected_late = {finding["message_id"] for finding in expected["breaks"] if finding["class"] == "LATE"}
    late = {
        id_
        for id_, effect in first.items()
        if effect.at - created[effect.partition, effect.offset] > MAX_LATENCY
    }
    if late != expected_late:
        yield f"expected {len(expected_late)} messages to be late, found {len(late)}"


def _effects_expected(expected: Mapping[str, Any], message_ids: set[str]) -> dict[str, int]:
    """Return the expected number of effects of each message; one if the truth does not name it."""
    counts = dict.fromkeys(message_ids, 1) | dict.fromkeys(expected["not_sent"], 0)
    for finding in expected["breaks"]:
        if finding["class"] in ("LOST", "IN_FLIGHT"):
            counts[finding["message_id"]] = 0
        elif finding["class"] == "OUTPUT_DUPLICATE":
            counts[finding["message_id"]] = max(2, len(finding["offsets"]))
    return counts


def _effects(files: Mapping[str, Path]) -> Iterator[Effect]:
    for name, file in files.items():
        if name == "order_received.csv":
            for row in csv.DictReader(file.read_text().splitlines()):
                place = int(row["source_partition"]), int(row["source_offset"])
                yield Effect(row["order_id"], *place, datetime.fromisoformat(row["loaded_at"]))
        elif name == "delivered.jsonl":
            for row in _rows(file):
                at = datetime.fromisoformat(row["processed_at"])
                yield Effect(row["message_id"], row["partition"], row["offset"], at)
        elif name.startswith("read/"):
            for row in _rows(file):
                if row["name"] == "record_data":
                    at = datetime.fromtimestamp(row["timestamp"] / 1000, UTC)
                    yield Effect(row["value"], row["partition"], row["offset"], at)


def _creation_times(files: Mapping[str, Path]) -> dict[tuple[int, int], datetime]:
    return {
        (row["partition"], row["offset"]): datetime.fromisoformat(row["record_timestamp"])
        for row in _rows(files["log.jsonl"])
    }


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    for line in file.read_text().splitlines():
        yield json.loads(line)

"""The files of snapshots: gzip, a line of JSON that says what it is, then a line per history. No Spark needed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent / "kept"
OF_THE_RUN: Final = ("run_id", "generated_at")
"""What a statement says of its run, and not of its evidence."""
_TIMES: Final = {
    "produced": "attempted_at",
    "log": "record_timestamp",
    "delivered": "processed_at",
    "read": "processed_at",
    "assigned": "assigned_at",
    "committed": "committed_at",
    "mirrored": "committed_at",
}


@dataclass(frozen=True)
class Snapshot:
    """What an engine said of one history: the statement without `OF_THE_RUN`, and every break.

    `digest` names the inputs. `breaks` are as in `breaks.jsonl`, but for the order of evidence rows of one time: an
    engine may give these in any.
    """

    name: str
    digest: str
    statement: Mapping[str, Any]
    breaks: tuple[Mapping[str, Any], ...]


def snapshot_of(name: str, digest: str, found: Mapping[str, Any]) -> Snapshot:
    """Return the snapshot of a statement that has its `breaks`."""
    plain = json.loads(json.dumps(found))
    breaks = tuple(_in_order(one) for one in plain.pop("breaks"))
    return Snapshot(name, digest, {key: plain[key] for key in plain if key not in OF_THE_RUN}, breaks)


def write(path: Path, expected: str, snapshots: Iterable[Snapshot]) -> None:
    """Write the snapshots in the order of their names, the same bytes for the same snapshots."""
    lines = [{"what": expected}, *(vars(one) for one in sorted(snapshots, key=lambda one: one.name))]
    text = "".join(json.dumps(line, sort_keys=True, ensure_ascii=False) + "\n" for line in lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def read(path: Path) -> dict[str, Snapshot]:
    """Return the snapshots of a file by name.

    Raises:
        FileNotFoundError: where nothing was written yet.
    """
    _, *lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    found = [json.loads(line) for line in lines]
    return {one["name"]: Snapshot(**one | {"breaks": tuple(one["breaks"])}) for one in found}


def _in_order(found: dict[str, Any]) -> dict[str, Any]:
    evidence = {
        ledger: _ties_in_order(rows, _TIMES.get(ledger, "at"))
        for ledger, rows in (found["evidence"] or {}).items()
    }
    return found | {"evidence": evidence}


def _ties_in_order(rows: list[dict[str, Any]], time: str) -> list[dict[str, Any]]:
    """Return rows with those that follow each other at one time in the order of their text."""
    at_once = groupby(rows, key=lambda row: row.get(time))
    return [
        row for _, tied in at_once for row in sorted(tied, key=lambda one: json.dumps(one, sort_keys=True))
    ]

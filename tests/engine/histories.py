"""Reads the golden histories in `cases/*.yml`: short notation to canonical rows, for oracle and engine alike.

A file is a list of cases. A case has `name`, `because` (the sentence of the taxonomy it stands on), optionally `trap`
(the number in taxonomy section 7), `contract` (fields that differ from the default contract), `ledgers`, `bounds`,
`coverage`, `absent` (ledgers declared but not there), `lacks` (columns that a ledger's source has not), `unknown` (per
ledger the content columns whose nulls its contract calls unknown) and `expect`.

Times are durations after the window's start (`5m`, `-1h30m`, `0s`); the window is an hour, its grace 15 minutes.
Positions are `partition/offset` in the topic `orders`. Short names in rows: `id` message_id, `at` the ledger's own
time, `done` completed_at, `pos` position, `part` partition, `to` intended_partition, `out` outcome, `hash`
payload_hash, `key` key_hash, `tx` transaction_id, `state` transaction_state, `seq` sequence, `session`
producer_session, `group` consumer_group, `first` first_offset, `next` committed_offset, `one`
is_individual, `taken` taken_at (when a table of positions said so, for rows without a time), `ts` record_timestamp,
`control` is_control; canonical names are accepted too.
A row with an id has the payload hash `h-<id>` unless `hash` says otherwise. What a
row leaves out is null, but attempts are acked in session s1 of producer p1.

`state` is what the log says of a record's transaction, and what a row of `filtered`, `dead_letters` or `staged` says of
its own: `none` or left out, `committed`, `aborted` or `open`. Only committed rows, and those in no transaction, set a
message aside; `open` also stands for what lies above the last stable offset of the topic that sets aside. In a fan-out
by key their `effect_key` says which effect they stand for; without it they stand for all of their message.

`bounds: {0: {start: 2, stable: 9, end: 9, policy: compact, sparse: true, observed: 70m}}` states a log partition's
bounds; left out: from offset 0 to just above the last record,
observed at the end of the grace; what a row itself says of them stands.
`coverage: {delivered: {from: 0s, until: 40m, sound: false, all_producers: false}}`; left out: everything up to the end
of the grace, all producers named.
`coverage: {produced: {says: {complete_until: 75m, producers: [p1, p2], sequences: gapless}}}` is a contract's coverage,
which the oracle holds against the rows (oracle/covering.py), and engine/test_said_coverage.py the engine.
`coverage: {committed: {share_group: true}}`: the source shows that the group is a share group.
`coverage: {delivered: none}` covers nothing. `offsets: {0: [2, 4]}` makes the window the offsets 2 and 3 of partition
0, beside the hour; the contract then has `windows: offsets`.

`expect`: `verdict`, `classes` and `flags` (exact), `breaks` (all of them; of each the keys given), `totals` (sums over
all partitions), `offsets` (sums of the offset balance), `not_judged` (classes that must be among them),
`says` (parts of what the coverage says).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol

import yaml
from tests.oracle import OracleCoverage
from tests.oracle.covering import said_coverage

from tieout.contracts import Contract, CoverageSpec
from tieout.model import POSITION_LEDGERS, Ledger, OffsetRange, Window

CASES: Final = Path(__file__).parent / "cases"
START: Final = datetime(2026, 11, 20, 10, tzinfo=UTC)
WINDOW: Final = Window(START, START + timedelta(hours=1))
GRACE_END: Final = WINDOW.end + timedelta(minutes=15)
READ_AT: Final = datetime(2026, 11, 21, tzinfo=UTC)
"""When the evidence was read."""
TOPIC: Final = "orders"
GROUP: Final = "loader"

_SHORT: Final = {
    "id": "message_id",
    "done": "completed_at",
    "to": "intended_partition",
    "out": "outcome",
    "hash": "payload_hash",
    "key": "key_hash",
    "tx": "transaction_id",
    "state": "transaction_state",
    "seq": "sequence",
    "session": "producer_session",
    "group": "consumer_group",
    "first": "first_offset",
    "next": "committed_offset",
    "one": "is_individual",
    "taken": "taken_at",
    "ts": "record_timestamp",
    "control": "is_control",
    "part": "partition",
}
_TIME_OF: Final = {
    Ledger.PRODUCED: "attempted_at",
    Ledger.LOG: "record_timestamp",
    Ledger.DELIVERED: "processed_at",
    Ledger.READ: "processed_at",
    Ledger.ASSIGNED: "assigned_at",
    Ledger.COMMITTED: "committed_at",
    Ledger.MIRRORED: "committed_at",
    Ledger.FILTERED: "at",
    Ledger.DEAD_LETTERS: "at",
    Ledger.STAGED: "at",
}
_TIMES: Final = {*_TIME_OF.values(), "completed_at", "record_timestamp", "observed_at", "taken_at"}
_WITH_PAYLOAD: Final = (Ledger.PRODUCED, Ledger.LOG, Ledger.DELIVERED, Ledger.READ)
_NOTATION: Final = {
    ledger: frozenset({time, "message_id", "topic", "partition", "offset", "outcome", "payload_hash"})
    if ledger in _WITH_PAYLOAD
    else frozenset({time, "message_id", "topic", "partition", "offset", "committed_offset", "consumer_group"})
    for ledger, time in _TIME_OF.items()
}
"""The columns of a ledger without rows: an empty source has columns, too."""
_DURATION: Final = re.compile(r"(-?)(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?(?:(\d+)us)?")


class History(Protocol):
    """A history as golden cases and random ones have it."""

    @property
    def contract(self) -> Contract:
        """What is promised."""

    @property
    def window(self) -> Window:
        """What is judged."""

    @property
    def coverage(self) -> Mapping[Ledger, OracleCoverage]:
        """How far each ledger is complete."""

    @property
    def present(self) -> Mapping[Ledger, frozenset[str]]:
        """The columns that each ledger has."""

    @property
    def rows(self) -> Mapping[Ledger, list[dict[str, Any]]]:
        """The canonical rows of each ledger."""


@dataclass(frozen=True)
class Covered(OracleCoverage):
    """A ledger's coverage; `is_share_group` says that its source shows the group to be a share group."""

    is_share_group: bool = False


@dataclass(frozen=True)
class Case:
    """One golden history: what is given, and what the taxonomy says of it."""

    name: str
    file: str
    because: str
    trap: int | None
    contract: Contract
    window: Window
    rows: dict[Ledger, list[dict[str, Any]]]
    coverage: dict[Ledger, OracleCoverage]
    present: dict[Ledger, frozenset[str]]
    expect: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.file}: {self.name}"


@dataclass(frozen=True)
class Said:
    """A history whose ledgers are complete as far as the contract says."""

    contract: Contract
    rows: Mapping[Ledger, list[dict[str, Any]]]
    window: Window
    read_at: datetime

    @property
    def coverage(self) -> Mapping[Ledger, OracleCoverage]:
        """How far each ledger is complete."""
        return {
            ledger: said_coverage(self.contract, ledger, rows, window=self.window, read_at=self.read_at)
            for ledger, rows in self.rows.items()
        }

    @property
    def present(self) -> Mapping[Ledger, frozenset[str]]:
        """The columns that each ledger has."""
        return {ledger: columns_of(rows) for ledger, rows in self.rows.items()}


def load_cases(folder: Path = CASES) -> list[Case]:
    """Return every case of every file, in the order of file names."""
    return [
        load_case(file.stem, written)
        for file in sorted(folder.glob("*.yml"))
        for written in yaml.safe_load(file.read_text(encoding="utf-8"))
    ]


def load_case(file: str, written: Mapping[str, Any]) -> Case:
    """Return one case from its short notation.

    Raises:
        ValueError: where the case has a key or a row has a column that the notation does not know.
    """
    unknown = set(written) - {
        "name", "because", "trap", "contract", "offsets", "ledgers", "bounds", "coverage", "absent", "lacks", "unknown",
        "expect",
    }  # fmt: skip
    if unknown:
        raise ValueError(f"{file}: {written.get('name')}: unknown keys {sorted(unknown)}")
    ledgers = {Ledger(name): rows or [] for name, rows in written["ledgers"].items()}
    rows = {ledger: [_row(ledger, short) for short in shorts] for ledger, shorts in ledgers.items()}
    if Ledger.LOG in rows:
        rows[Ledger.LOG] = with_bounds(rows[Ledger.LOG], written.get("bounds", {}))
    lacks = written.get("lacks", {})
    rows = {
        ledger: [{name: row[name] for name in row if name not in lacks.get(ledger, ())} for row in found]
        for ledger, found in rows.items()
    }
    absent = [Ledger(name) for name in written.get("absent", [])]
    contract = contract_for([*ledgers, *absent], written.get("contract", {}), written.get("unknown", {}))
    contract = _with_said(contract, written.get("coverage", {}))
    window = replace(WINDOW, offsets=_ranges(written.get("offsets", {})))
    return Case(
        name=written["name"],
        file=file,
        because=written["because"],
        trap=written.get("trap"),
        contract=contract,
        window=window,
        rows=rows,
        coverage={
            ledger: said_coverage(contract, ledger, rows[ledger], window=window, read_at=READ_AT)
            if isinstance(stated, dict) and "says" in stated
            else _ledger_coverage(stated)
            for ledger, stated in ((one, written.get("coverage", {}).get(str(one), {})) for one in ledgers)
        },
        present={ledger: columns_of(found) or _NOTATION[ledger] for ledger, found in rows.items()},
        expect=written["expect"],
    )


def _ranges(stated: Mapping[int, tuple[int, int]]) -> tuple[OffsetRange, ...]:
    return tuple(OffsetRange(TOPIC, partition, *ends) for partition, ends in sorted(stated.items()))


def contract_for(
    ledgers: list[Ledger], overrides: Mapping[str, Any], unknown: Mapping[str, list[str]] | None = None
) -> Contract:
    """Return the default contract over these ledgers; their files are never read.

    `unknown` are, per ledger, the content columns whose nulls are not known.
    """
    return Contract.model_validate(
        {
            "version": 1,
            "pipeline": "orders_to_warehouse",
            "guarantee": "exactly_once",
            "group": GROUP,
            "ledgers": {
                str(ledger): {
                    "source": {"kind": "files", "format": "jsonl", "path": f"{ledger}.jsonl"},
                    "coverage": "declared",
                    "unknown": (unknown or {}).get(str(ledger)),
                }
                for ledger in ledgers
            },
            **overrides,
        }
    )


def time_of(text: str) -> datetime:
    """Return the time that a duration such as `-1h30m` names, counted from the window's start.

    >>> time_of("-90s").isoformat()
    '2026-11-20T09:58:30+00:00'
    """
    found = _DURATION.fullmatch(text)
    if found is None or not text.strip("-"):
        raise ValueError(f"not a time: {text!r}; expected a duration such as 5m, -1h30m or 250ms")
    sign, days, hours, minutes, seconds, millis, micros = found.groups()
    length = timedelta(
        days=int(days or 0),
        hours=int(hours or 0),
        minutes=int(minutes or 0),
        seconds=int(seconds or 0),
        milliseconds=int(millis or 0),
        microseconds=int(micros or 0),
    )
    return START - length if sign else START + length


def columns_of(rows: list[dict[str, Any]]) -> frozenset[str]:
    """Return the columns that any of the rows has."""
    return frozenset(column for row in rows for column in row)


def with_bounds(rows: list[dict[str, Any]], stated: Mapping[int, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the log's rows with their partition's bounds, and one row of bounds for a partition without records.

    What a row itself says of the bounds stands.
    """
    partitions = sorted({row["partition"] for row in rows} | set(stated))
    full = []
    for partition in partitions:
        own = [row for row in rows if row["partition"] == partition]
        bounds = _bounds(own, stated.get(partition, {}))
        full += [{**bounds, **row} for row in own or [{"topic": TOPIC, "partition": partition}]]
    return full


def _bounds(rows: list[dict[str, Any]], stated: Mapping[str, Any]) -> dict[str, Any]:
    end = stated.get("end", max((row["offset"] for row in rows), default=-1) + 1)
    opened = [row["offset"] for row in rows if row.get("transaction_state") == "open"]
    observed = stated.get("observed")
    return {
        "log_start_offset": stated.get("start", 0),
        "last_stable_offset": stated.get("stable", min(opened, default=end)),
        "end_offset": end,
        "observed_at": time_of(observed) if observed else GRACE_END,
        "cleanup_policy": stated.get("policy", "delete"),
        **({"is_sparse": True} if stated.get("sparse") else {}),
    }


def _row(ledger: Ledger, short: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    if ledger is Ledger.PRODUCED:
        row = {"producer_id": "p1", "producer_session": "s1", "topic": TOPIC, "outcome": "acked"}
    for name, value in short.items():
        if name == "pos":
            partition, offset = str(value).split("/")
            row |= {"topic": TOPIC, "partition": int(partition), "offset": int(offset)}
        elif name == "at":
            row[_TIME_OF[ledger]] = value
        else:
            row[_SHORT.get(name, name)] = value
    if ledger in (*POSITION_LEDGERS, Ledger.LOG) and "topic" not in row:
        row["topic"] = TOPIC
    if ledger in _WITH_PAYLOAD and row.get("message_id") is not None:
        row.setdefault("payload_hash", f"h-{row['message_id']}")
    return {
        name: time_of(value) if name in _TIMES and value is not None else value for name, value in row.items()
    }


def _with_said(contract: Contract, stated: Mapping[str, Any]) -> Contract:
    """Return the contract with the coverage that a case has it say."""
    said = {
        Ledger(name): one["says"] for name, one in stated.items() if isinstance(one, dict) and "says" in one
    }
    specs = {
        ledger: spec.model_copy(update={"coverage": _spec_of(said[ledger])}) if ledger in said else spec
        for ledger, spec in contract.ledgers.items()
    }
    return contract.model_copy(update={"ledgers": specs})


def _spec_of(said: Mapping[str, Any]) -> CoverageSpec:
    times = {
        name: time_of(said[name]).isoformat()
        for name in ("complete_until", "complete_from")
        if _DURATION.fullmatch(said.get(name, "")) and name in said
    }
    return CoverageSpec.model_validate_json(json.dumps({**said, **times}))


def _ledger_coverage(stated: Mapping[str, Any] | str) -> OracleCoverage:
    if isinstance(stated, str):
        return OracleCoverage(complete_until=None, names_all_producers=True)
    since, until = stated.get("from"), stated.get("until")
    return Covered(
        covers_from=time_of(since) if since else None,
        complete_until=time_of(until) if until else GRACE_END,
        is_sound=stated.get("sound", True),
        names_all_producers=stated.get("all_producers", True),
        is_share_group=stated.get("share_group", False),
    )

"""Random histories for oracle and engine: plausible ones from a simulated pipeline, and wild ones of arbitrary rows.

`histories(seed, count)` is fast and repeatable, `families` draws many histories under each setting; `plausible` and
`arbitrary` are hypothesis strategies over the same generators, so that a failing history shrinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

from hypothesis import strategies as st
from tests.engine.histories import GRACE_END, GROUP, START, TOPIC, WINDOW, contract_for
from tests.oracle.faults import draw_faults
from tests.oracle.history import OracleCoverage
from tests.oracle.kept_positions import in_ranges, mirrored_from
from tests.oracle.misleading import crowd_into_one_key
from tests.oracle.simulating import Row, Simulation
from tests.oracle.varying import EDGES, carry_headers, varied

from tieout.contracts import Contract
from tieout.model import POSITION_LEDGERS, Ledger, Window

_PAYLOADS = ("x", "y", "z")
GUARANTEES = ("at_most_once", "at_least_once", "exactly_once", "exactly_once")
ORDERINGS = ("none", "none", "partition", "key")
_PLACE = ("message_id", "topic", "partition", "offset", "leader_epoch")
_CONTENT = (*_PLACE, "key_hash", "payload_hash", "header_hash", "record_timestamp", "content")
_READER = (
    "consumer_group",
    "consumer_id",
    "generation",
    "delivery_sequence",
    "processed_at",
    "producer_session",
)
_OUTPUT = (*_CONTENT, *_READER, "effect_key", "outcome")
_SIDE = frozenset({*_PLACE[:-1], "payload_hash", "effect_key", "at", "reason", "transaction_state"})
RANGES = frozenset({"first_offset", "metadata"})
"""What says that a commit is a range: windows with such columns are matched in full."""
_POSITIONS = frozenset(
    {
        "consumer_group",
        "topic",
        "partition",
        "first_offset",
        "committed_offset",
        "committed_at",
        "taken_at",
        "leader_epoch",
        "metadata",
    }
)
COLUMNS: dict[Ledger, frozenset[str]] = {
    Ledger.PRODUCED: frozenset(
        {
            *_CONTENT,
            "effect_key",
            "producer_id",
            "producer_session",
            "sequence",
            "transaction_id",
            "transaction_state",
            "intended_partition",
            "attempted_at",
            "completed_at",
            "is_approximate",
            "outcome",
        }
    ),
    Ledger.LOG: frozenset(
        {
            *_CONTENT,
            "transaction_state",
            "is_control",
            "broker_producer_id",
            "timestamp_type",
            "log_start_offset",
            "last_stable_offset",
            "end_offset",
            "observed_at",
            "cleanup_policy",
        }
    ),
    Ledger.DELIVERED: frozenset({*_OUTPUT, "transaction_id", "transaction_state"}),
    Ledger.READ: frozenset({*_OUTPUT, "transaction_id", "transaction_state", "isolation"}),
    Ledger.COMMITTED: _POSITIONS,
    Ledger.MIRRORED: _POSITIONS - RANGES,
    Ledger.ASSIGNED: frozenset(
        {"consumer_group", "consumer_id", "generation", "kind", "assigned_at", "partitions"}
    ),
    Ledger.FILTERED: _SIDE,
    Ledger.DEAD_LETTERS: _SIDE,
    Ledger.STAGED: _SIDE,
}
"""The columns that the generated rows may have, as `present` says them."""
NOT_CARRIED: dict[Ledger, frozenset[str]] = {
    Ledger.PRODUCED: frozenset({"header_hash", "record_timestamp"}),
    Ledger.LOG: frozenset({"header_hash"}),
    Ledger.DELIVERED: frozenset({"header_hash", "record_timestamp"}),
    Ledger.READ: frozenset({"header_hash", "record_timestamp"}),
}
"""What sources lack that show neither headers nor their messages' times."""
_SPARE: dict[Ledger, tuple[tuple[str, ...], ...]] = {
    Ledger.PRODUCED: (
        ("key_hash",),
        ("payload_hash",),
        ("message_id",),
        ("sequence",),
        ("producer_session",),
        ("producer_id", "producer_session"),
        ("transaction_state",),
        ("transaction_id", "transaction_state"),
        ("intended_partition",),
        ("partition", "offset"),
        ("offset",),
        ("attempted_at",),
        ("completed_at",),
        ("effect_key",),
        ("header_hash", "record_timestamp"),
        ("outcome",),
    ),
    Ledger.LOG: (
        ("key_hash",),
        ("payload_hash",),
        ("message_id",),
        ("transaction_state",),
        ("record_timestamp",),
        ("header_hash",),
        ("timestamp_type",),
        ("is_control",),
        ("broker_producer_id",),
        ("leader_epoch",),
        ("log_start_offset",),
        ("last_stable_offset",),
        ("end_offset",),
        ("observed_at",),
        ("cleanup_policy",),
    ),
    Ledger.DELIVERED: (
        ("key_hash",),
        ("payload_hash",),
        ("message_id",),
        ("partition", "offset"),
        ("offset",),
        ("consumer_group",),
        ("generation",),
        ("consumer_id",),
        ("delivery_sequence",),
        ("producer_session",),
        ("effect_key",),
        ("header_hash", "record_timestamp"),
        ("leader_epoch",),
        ("processed_at",),
        ("outcome",),
        ("transaction_state",),
        ("transaction_id", "transaction_state"),
    ),
    Ledger.READ: (
        ("key_hash",),
        ("payload_hash",),
        ("message_id",),
        ("partition", "offset"),
        ("consumer_group",),
        ("delivery_sequence",),
        ("generation",),
        ("processed_at",),
        ("isolation",),
        ("consumer_id",),
        ("outcome",),
    ),
    Ledger.COMMITTED: (("consumer_group",), ("committed_at",), ("leader_epoch",)),
    Ledger.ASSIGNED: (("assigned_at",), ("consumer_group",)),
    Ledger.DEAD_LETTERS: (("message_id",), ("partition", "offset"), ("payload_hash",)),
    Ledger.FILTERED: (("message_id",), ("partition", "offset"), ("payload_hash",)),
}
"""The columns that a source may lack; those of a tuple go together."""


@dataclass(frozen=True)
class RandomHistory:
    """One history, ready to be judged; its name is the seed that makes it again."""

    name: str
    contract: Contract
    window: Window
    rows: dict[Ledger, list[Row]]
    coverage: dict[Ledger, OracleCoverage]
    present: dict[Ledger, frozenset[str]]


@dataclass(frozen=True)
class Setting:
    """What a family of histories has in common: terms, declared ledgers, and how far each is complete.

    `absent` are ledgers that the contract declares and nobody delivered, `lacking` the columns that a source has not,
    `carries` says whether messages have headers and a time of their own, `unknown` in which columns null is unknown.
    """

    is_wild: bool
    terms: dict[str, Any]
    ledgers: tuple[Ledger, ...]
    coverage: dict[Ledger, OracleCoverage]
    absent: tuple[Ledger, ...]
    lacking: dict[Ledger, frozenset[str]]
    carries: bool = False
    unknown: dict[str, list[str]] = field(default_factory=dict)


def histories(seed: int, count: int, wild_share: float = 0.2) -> Iterator[RandomHistory]:
    """Yield `count` histories that depend on nothing but the seed; each can be had alone by its own seed."""
    for number in range(count):
        rng = Random(f"{seed}/{number}")  # noqa: S311 - repeatable, not secret
        yield history_in(draw_setting(rng, is_wild=rng.random() < wild_share), rng, f"{seed}/{number}")


def families(
    seed: int | str, count: int, size: int, wild_share: float = 0.2
) -> Iterator[list[RandomHistory]]:
    """Yield `count` families of `size` histories that share a setting, so that one run can judge a whole family."""
    for number in range(count):
        rng = Random(f"{seed}/{number}")  # noqa: S311 - repeatable, not secret
        setting = draw_setting(rng, is_wild=rng.random() < wild_share)
        yield [history_in(setting, rng, f"{seed}/{number}/{member}") for member in range(size)]


def draw_setting(rng: Random, *, is_wild: bool) -> Setting:
    """Return terms, ledgers and coverage for a family of histories."""
    ledgers = _wild_ledgers(rng) if is_wild else _plausible_ledgers(rng)
    absent = (Ledger.DEAD_LETTERS,) if rng.random() < 0.03 and Ledger.DEAD_LETTERS not in ledgers else ()
    terms = _terms(rng, ledgers)
    terms |= _multiplicity(rng, terms, ledgers)
    terms |= _consumption(rng)
    coverages = _coverages(rng, list(ledgers))
    lacking = {} if is_wild else _without_ranges(_lacking(rng, terms, ledgers))
    carries = not is_wild and rng.random() < 0.3
    return Setting(is_wild, terms, ledgers, coverages, absent, lacking, carries, _unknown(rng, ledgers))


def history_in(setting: Setting, rng: Random, name: str) -> RandomHistory:
    """Return a history of the setting."""
    made = _wild_rows(rng, setting.ledgers) if setting.is_wild else _simulated_rows(rng, setting)
    lacking = {
        ledger: setting.lacking.get(ledger, frozenset())
        | (frozenset() if setting.carries else NOT_CARRIED.get(ledger, frozenset()))
        for ledger in setting.ledgers
    }
    rows = {
        ledger: [
            {name: value for name, value in row.items() if name not in lacking.get(ledger, ())}
            for row in made[ledger]
        ]
        for ledger in setting.ledgers
    }
    return RandomHistory(
        name=name,
        contract=contract_for([*rows, *setting.absent], setting.terms, setting.unknown),
        window=WINDOW,
        rows=rows,
        coverage=setting.coverage,
        present={ledger: COLUMNS[ledger] - lacking.get(ledger, frozenset()) for ledger in rows},
    )


def simulated(rng: Random) -> RandomHistory:
    """Return the evidence of one simulated pipeline, some of its ledgers cut or left out."""
    return history_in(draw_setting(rng, is_wild=False), rng, "simulated")


def wild(rng: Random) -> RandomHistory:
    """Return arbitrary rows: nothing needs to make sense, and nothing may crash."""
    return history_in(draw_setting(rng, is_wild=True), rng, "wild")


def _plausible_ledgers(rng: Random) -> tuple[Ledger, ...]:
    output = rng.choice(("delivered", "delivered", "delivered", "both", "read"))
    likely = {
        Ledger.LOG: 0.7,
        Ledger.DELIVERED: 0.0 if output == "read" else 1.0,
        Ledger.READ: 0.0 if output == "delivered" else 1.0,
        Ledger.COMMITTED: 0.6,
        Ledger.FILTERED: 0.4,
        Ledger.DEAD_LETTERS: 0.4,
        Ledger.STAGED: 0.3,
        Ledger.ASSIGNED: 0.2,
    }
    return (Ledger.PRODUCED, *(ledger for ledger, share in likely.items() if rng.random() < share))


def _simulated_rows(rng: Random, setting: Setting) -> dict[Ledger, list[Row]]:
    terms = setting.terms
    by_content = terms.get("identity") == "content"
    fan_out = _fan_out(rng, terms.get("multiplicity", {}))
    simulation = Simulation(
        rng,
        draw_faults(rng),
        partitions=rng.randint(1, 3),
        is_transactional=rng.random() < 0.4,
        is_compacted=rng.random() < 0.25,
        payloads=_PAYLOADS[: rng.randint(1, 3)] if by_content else (),
        fan_out=fan_out,
    )
    simulation.run(rng.choice((0, 1, 2, 3, 4, 6, 8, 12)))
    if len(fan_out) > 1 and rng.random() < 0.5:
        for row in simulation.produced:
            row["effect_key"] = rng.choice((*fan_out, "9"))
    rows = {
        Ledger.PRODUCED: simulation.produced,
        Ledger.LOG: simulation.log_rows(has_ids=rng.random() < 0.85),
        Ledger.DELIVERED: simulation.delivered,
        Ledger.READ: simulation.read,
        Ledger.COMMITTED: simulation.committed,
        Ledger.FILTERED: simulation.filtered,
        Ledger.DEAD_LETTERS: simulation.dead_letters,
        Ledger.STAGED: simulation.staged,
        Ledger.ASSIGNED: [],
    }
    if Ledger.MIRRORED in setting.ledgers:
        rows[Ledger.MIRRORED] = mirrored_from(rng, simulation.committed)
    if "first_offset" not in setting.lacking.get(Ledger.COMMITTED, ()):
        rows[Ledger.COMMITTED] = in_ranges(rng, rows[Ledger.COMMITTED])
    if setting.carries:
        carry_headers(rng, rows)
    if terms.get("ordering") == "key" and rng.random() < 0.4:
        crowd_into_one_key(rng, rows)
    varied_rows = varied(rng, rows)
    varied_rows[Ledger.DELIVERED] = _said_of_messages(rng, varied_rows[Ledger.DELIVERED])
    return _nameless(rng, varied_rows) if by_content else varied_rows


def _fan_out(rng: Random, multiplicity: dict[str, Any]) -> tuple[str | None, ...]:
    """Return the effect keys of a message: as many as the multiplicity asks for, now and then one unnamed."""
    if multiplicity.get("kind") != "one_to_many":
        return (None,)
    if "count" in multiplicity:
        return (None,) * multiplicity["count"]
    return rng.choice((("1", "2"), ("1", "2"), ("1", "2", "3"), ("1", None)))


def _nameless(rng: Random, rows: dict[Ledger, list[Row]]) -> dict[Ledger, list[Row]]:
    """Return rows without ids, as they are where only the content tells; now and then one without content, too."""
    lacking = rng.choice((0.0, 0.0, 0.1))
    return {
        ledger: [
            row
            | {"message_id": None}
            | ({"payload_hash": None} if row.get("payload_hash") and rng.random() < lacking else {})
            for row in found
        ]
        for ledger, found in rows.items()
    }


def _wild_ledgers(rng: Random) -> tuple[Ledger, ...]:
    ledgers = [Ledger.PRODUCED, Ledger.DELIVERED, *([Ledger.LOG] if rng.random() < 0.6 else [])]
    others = (
        *(Ledger.READ, Ledger.COMMITTED, Ledger.FILTERED, Ledger.DEAD_LETTERS, Ledger.STAGED),
        Ledger.MIRRORED,
    )
    return (*ledgers, *(ledger for ledger in others if rng.random() < 0.3))


def _wild_rows(rng: Random, ledgers: tuple[Ledger, ...]) -> dict[Ledger, list[Row]]:
    most = {Ledger.PRODUCED: 5, Ledger.DELIVERED: 5}
    return {
        ledger: _wild_log(rng)
        if ledger is Ledger.LOG
        else [_wild_row(rng, ledger) for _ in range(rng.randint(0, most.get(ledger, 3)))]
        for ledger in ledgers
    }


def _terms(rng: Random, ledgers: tuple[Ledger, ...]) -> dict[str, Any]:
    """Return the contract's fields."""
    guarantee = rng.choice(GUARANTEES)
    budgets: dict[str, float] = {}
    if rng.random() < 0.3:
        budgets["late_ratio"] = rng.choice((0.0, 0.2, 1.0))
    if guarantee == "at_most_once" and rng.random() < 0.5:
        budgets["loss_ratio"] = rng.choice((0.0, 0.3))
    if guarantee == "at_least_once" and rng.random() < 0.5:
        budgets["duplicate_ratio"] = rng.choice((0.0, 0.5))
    return {
        "guarantee": guarantee,
        "budgets": budgets,
        "clock_skew": rng.choice(("0s", "0s", "1s", "30s")),
        "look_back": rng.choice(("7d", "2h")),
        "ordering": rng.choice(ORDERINGS),
        **({} if Ledger.DELIVERED in ledgers else {"effects": rng.choice(("delivered", "read"))}),
        **_annotations(rng),
        **_identity(rng),
    }


def _annotations(rng: Random) -> dict[str, Any]:
    """Return now and then an operator's reset of the group, or of another one."""
    if rng.random() > 0.15:
        return {}
    at = START + timedelta(minutes=rng.choice((-5, 0, 10, 40)), seconds=rng.choice((0, 1)))
    group = rng.choice((GROUP, GROUP, "other"))
    return {"annotations": [{"at": at.isoformat(), "kind": "offset_reset", "group": group, "note": "again"}]}


def _identity(rng: Random) -> dict[str, Any]:
    kind = rng.random()
    if kind < 0.05:
        return {"id_scope": "session"}
    if kind < 0.15:
        return {"identity": "position"}
    return {"identity": "content"} if kind < 0.25 else {}


def _multiplicity(rng: Random, terms: dict[str, Any], ledgers: tuple[Ledger, ...]) -> dict[str, Any]:
    """Return how many effects a message has: mostly one; more only where the output shows them."""
    kind = rng.random()
    if kind < 0.05:
        return {"multiplicity": {"kind": "many_to_one"}}
    if kind > 0.2 or terms.get("identity") == "content" or Ledger.DELIVERED not in ledgers:
        return {}
    fan_out = rng.choice(({"count": 2}, {"count": 3}, {"effect_key": "line"}, {"effect_key": "line"}))
    return {"multiplicity": {"kind": "one_to_many", **fan_out}}


def _consumption(rng: Random) -> dict[str, Any]:
    """Return now and then that the group takes its messages as from a queue."""
    if rng.random() > 0.1:
        return {}
    return {"consumption": "queue", "redelivery": rng.choice(("0s", "30s", "1h"))}


def _lacking(rng: Random, terms: dict[str, Any], ledgers: tuple[Ledger, ...]) -> dict[Ledger, frozenset[str]]:
    """Return the columns that sources lack; in half of the settings none does."""
    lacking: dict[Ledger, frozenset[str]] = {}
    if rng.random() < 0.5:
        return lacking
    spare = [ledger for ledger in ledgers if ledger in _SPARE]
    for ledger in rng.sample(spare, rng.randint(1, min(3, len(spare)))):
        gone = {name for group in rng.sample(_SPARE[ledger], rng.choice((1, 1, 2))) for name in group}
        lacking[ledger] = frozenset(gone - _needed(terms, ledger))
    return lacking


def _without_ranges(lacking: dict[Ledger, frozenset[str]]) -> dict[Ledger, frozenset[str]]:
    """Return the columns that sources lack, with where a commit begins: kept positions have histories of their own."""
    return lacking | {Ledger.COMMITTED: lacking.get(Ledger.COMMITTED, frozenset()) | RANGES}


def _unknown(rng: Random, ledgers: tuple[Ledger, ...]) -> dict[str, list[str]]:
    """Return now and then a content column of which the contract says that its nulls are not known."""
    shown = [one for one in ledgers if one in NOT_CARRIED]
    if rng.random() > 0.1:
        return {}
    return {str(rng.choice(shown)): [rng.choice(("payload_hash", "key_hash", "header_hash"))]}


def _needed(terms: dict[str, Any], ledger: Ledger) -> set[str]:
    """Return the columns without which rows of this identity say nothing of any message."""
    by: dict[str, set[str]] = {"position": {"partition", "offset"}, "content": {"payload_hash"}}
    needed = by.get(terms.get("identity", ""), set())
    return needed if ledger in (Ledger.PRODUCED, Ledger.DELIVERED, Ledger.READ) else set()


def _coverages(rng: Random, ledgers: list[Ledger]) -> dict[Ledger, OracleCoverage]:
    """Return the ledgers' coverage; in two of three histories everything is covered."""
    is_cut = rng.random() < 0.33
    names_all = rng.random() < 0.85
    covered = {ledger: _coverage(rng, names_all, is_cut and rng.random() < 0.4) for ledger in ledgers}
    if Ledger.COMMITTED in covered and rng.random() < 0.1:
        covered[Ledger.COMMITTED] = replace(covered[Ledger.COMMITTED], is_share_group=True)
    return covered


def _coverage(rng: Random, names_all: bool, is_cut: bool) -> OracleCoverage:
    until = GRACE_END + timedelta(hours=rng.choice((0, 0, 0, 3)))
    if not is_cut:
        since = START - timedelta(minutes=rng.choice((15, 15, 0))) if rng.random() < 0.2 else None
        return OracleCoverage(since, until, True, names_all)
    kind = rng.choice(("nothing", "unsound", "ends", "ends", "ends", "begins"))
    offset_by = timedelta(microseconds=rng.choice((0, 0, 1, -1)))
    return OracleCoverage(
        covers_from=START + rng.choice((timedelta(minutes=20), offset_by)) if kind == "begins" else None,
        complete_until={
            "nothing": None,
            "ends": rng.choice(
                (*(START + timedelta(minutes=minute) for minute in (10, 30, 59, 70)), *EDGES[1:])
            )
            + offset_by,
        }.get(kind, until),
        is_sound=kind != "unsound",
        names_all_producers=names_all,
    )


def _said_of_messages(rng: Random, rows: list[Row]) -> list[Row]:
    """Return the output's rows as the history's sink writes them: with ids, with positions, or with both."""
    kind = rng.choice(("both", "both", "id", "id", "position"))
    hidden = {"both": (), "id": ("partition", "offset"), "position": ("message_id",)}[kind]
    return [{name: None if name in hidden else value for name, value in row.items()} for row in rows]


def _wild_time(rng: Random) -> datetime | None:
    if rng.random() < 0.01:
        return None
    return START + timedelta(minutes=rng.choice((-200, -16, 0, 1, 5, 11, 30, 59, 60, 70, 75, 300)))


def _wild_row(rng: Random, ledger: Ledger) -> Row:
    def place(share: float) -> Row:
        if rng.random() > share:
            return {"topic": TOPIC}
        return {"topic": TOPIC, "partition": rng.randrange(2), "offset": rng.randrange(-1, 5)}

    identity = {
        "message_id": rng.choice(("a", "b", "c", None)),
        "payload_hash": rng.choice(("h", "h", "g", None)),
    }
    state = rng.choice((None, None, None, "none", "committed", "aborted", "open"))
    if ledger is Ledger.PRODUCED:
        transaction = rng.choice((None, None, "t1", "t2"))
        return {
            **identity,
            **place(0.7),
            "producer_id": "p1",
            "producer_session": rng.choice(("s1", "s2", None)),
            "sequence": rng.randrange(9),
            "transaction_id": transaction,
            "transaction_state": state if transaction else None,
            "intended_partition": rng.choice((None, 0, 1)),
            "key_hash": rng.choice((None, "k")),
            "attempted_at": _wild_time(rng),
            "completed_at": _wild_time(rng),
            "outcome": rng.choice(("acked", "acked", "unknown", "failed", None)),
        }
    if ledger in POSITION_LEDGERS:
        row = {
            "consumer_group": rng.choice((GROUP, GROUP, "other")),
            "topic": TOPIC,
            "partition": rng.randrange(2),
            "first_offset": rng.choice((None, None, 0, 1, 2, 3, 4)),
        }
        return {**row, "committed_offset": rng.randrange(6), "committed_at": _wild_time(rng)}
    if ledger in (Ledger.DELIVERED, Ledger.READ):
        transaction = rng.choice((None, None, None, "x1"))
        extra: Row = {"transaction_id": transaction, "transaction_state": state if transaction else None}
        if ledger is Ledger.READ:
            extra = {"isolation": rng.choice((None, "read_committed", "read_uncommitted"))}
        return {
            **identity,
            **place(0.6),
            **extra,
            "consumer_group": rng.choice((GROUP, None, "other")),
            "processed_at": _wild_time(rng),
            "key_hash": rng.choice((None, "k")),
            "outcome": rng.choice(("ok", "ok", "ok", "unknown", "failed", None)),
        }
    return {"message_id": identity["message_id"], **place(0.5), "at": _wild_time(rng), "reason": None}


def _wild_log(rng: Random) -> list[Row]:
    rows: list[Row] = []
    for partition in range(2):
        start = rng.randrange(3)
        end = start + rng.randrange(5)
        bounds = {
            "topic": TOPIC,
            "partition": partition,
            "log_start_offset": start,
            "end_offset": end,
            "last_stable_offset": rng.randint(start, end),
            "observed_at": START + timedelta(minutes=rng.choice((30, 75, 75, 300))),
            "cleanup_policy": rng.choice(("delete", "compact")),
        }
        records = [_wild_record(rng, offset) for offset in range(start, end) if rng.random() < 0.8]
        rows += [{**bounds, **record} for record in records or [{}]]
    return rows


def _wild_record(rng: Random, offset: int) -> Row:
    if rng.random() < 0.15:
        return {"offset": offset, "is_control": True, "record_timestamp": _wild_time(rng)}
    return {
        "offset": offset,
        "is_control": False,
        "message_id": rng.choice(("a", "b", "c", "d", None)),
        "payload_hash": rng.choice(("h", "h", "g", None)),
        "key_hash": rng.choice((None, "k")),
        "transaction_state": rng.choice(("none", "none", None, "committed", "aborted", "open")),
        "record_timestamp": _wild_time(rng),
    }


plausible = st.randoms(use_true_random=False).map(simulated)
arbitrary = st.randoms(use_true_random=False).map(wild)

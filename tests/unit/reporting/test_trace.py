"""The way of a message in words: every stage, what is missing, and what that proves."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import jsonschema
import pytest

from tieout.contracts import Contract
from tieout.model import Ledger, Window
from tieout.reporting.schema import trace_schema
from tieout.reporting.trace import (
    LedgerRows,
    RequestedBy,
    Subject,
    TraceRequest,
    journey,
    render_trace,
    trace_document,
)

SENT: dict[str, Any] = {
    "message_id": "m-1", "producer_id": "web", "producer_session": "s1", "sequence": 7, "topic": "orders",
    "partition": 0, "offset": 17, "attempted_at": "2026-11-20T10:00:00Z", "completed_at": "2026-11-20T10:00:01Z",
    "outcome": "acked",
}  # fmt: skip
STORED = {"topic": "orders", "partition": 0, "offset": 17, "message_id": "m-1",
          "record_timestamp": "2026-11-20T10:00:00.5Z", "transaction_state": "committed"}  # fmt: skip
COMMIT = {"topic": "orders", "partition": 0, "committed_offset": 20, "committed_at": "2026-11-20T10:00:05Z"}
COVERS = {"covers": True, "gap": None, "complete_until": "2026-11-20T11:15:00Z"}
LOST = {
    "key": "m:m-1", "message_id": "m-1", "class": "LOST", "flags": ["COMMIT_AHEAD"], "locus": "consumer",
    "disposition": "lost", "acceptance": "accepted", "is_judged_here": True, "is_due": True,
    "first_attempt": {"at": "2026-11-20T10:00:00Z"},
}  # fmt: skip
BREAK = {
    "break_id": "b1", "incident_id": "i1", "class": "LOST", "flags": [], "key": "m:m-1", "locus": "consumer",
    "cause": "commit before process", "admissible": ["commit before process"], "rule": "lost",
    "severity": "critical",
}  # fmt: skip


@pytest.fixture
def contract() -> Contract:
    """A contract with four ledgers."""
    source = {"kind": "files", "format": "jsonl", "path": "x.jsonl"}
    ledgers = ("produced", "log", "delivered", "committed")
    return Contract.model_validate(
        {"version": 1, "pipeline": "orders", "guarantee": "at_least_once", "group": "loader",
         "ledgers": {name: {"source": source} for name in ledgers}}
    )  # fmt: skip


@pytest.fixture
def window() -> Window:
    """The hour of the message."""
    return Window(datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC))


def _document(contract: Contract, window: Window | None, **changes: Any) -> dict[str, Any]:
    """Return the trace of a lost message, or one that differs from it."""
    ledger_rows = {Ledger.PRODUCED: SENT, Ledger.LOG: STORED, Ledger.COMMITTED: COMMIT}
    given = {
        "message_id": "m-1",
        "positions": (("orders", 0, 17),),
        "judged": LOST,
        "breaks": (BREAK,),
        "ledger_rows": {ledger: LedgerRows((row,), 1) for ledger, row in ledger_rows.items()},
        **changes,
    }
    coverage = None if window is None else {ledger.value: COVERS for ledger in contract.ledgers}
    requested = TraceRequest(RequestedBy.MESSAGE_ID, "m-1")
    return trace_document(contract, window, requested, [Subject(**given)], total=1, coverage=coverage)


def test_a_lost_message_is_traced_stage_by_stage(contract: Contract, window: Window) -> None:
    """One line a row with its time, what is missing with what that proves, and the engine's finding last."""
    document = _document(contract, window)

    jsonschema.Draft202012Validator(trace_schema()).validate(document)
    assert render_trace(document).splitlines() == [
        "m-1  in orders, group loader, 2026-11-20T10:00:00Z to 2026-11-20T11:00:00Z",
        "  attempted     2026-11-20T10:00:00Z      by web, session s1, sequence 7, to orders-0",
        "  acknowledged  2026-11-20T10:00:01Z      acknowledged, orders-0 offset 17",
        "  stored        2026-11-20T10:00:00.5Z    orders-0 offset 17, transaction committed",
        "  read          not declared              the contract declares no ledger read",
        "  written       missing                   none, and delivered covers the window: complete until "
        "2026-11-20T11:15:00Z",
        "  committed     2026-11-20T10:00:05Z      orders-0 up to 20",
        "  judged        -                         LOST; accepted; disposition lost; also COMMIT_AHEAD; at: consumer",
        "  break         critical                  LOST, at: consumer; cause: commit before process; break b1, "
        "incident i1",
    ]


def test_absence_proves_nothing_without_coverage_or_window(contract: Contract, window: Window) -> None:
    """Only a ledger that covers the window makes a missing row evidence."""
    gap = {"covers": False, "gap": "a producer session's sequence has gaps", "complete_until": None}
    rows = {"produced": [SENT]}
    declared = ["produced", "log", "delivered"]

    covered = journey(rows, declared=declared, coverage={"log": COVERS, "delivered": gap})
    bare = journey(rows)

    assert [(stage["stage"], stage["state"]) for stage in covered] == [
        ("attempted", "seen"), ("acknowledged", "seen"), ("stored", "missing"), ("read", "not_declared"),
        ("written", "not_covered"), ("committed", "not_declared"),
    ]  # fmt: skip
    assert "sequence has gaps" in covered[4]["note"]
    assert {stage["state"] for stage in bare} == {"seen", "absent"}
    without = _document(contract, None, judged=None, breaks=())
    assert "give --from and --to to have it judged" in render_trace(without)


@pytest.mark.parametrize(
    ("row", "stage", "state", "words"),
    [
        (SENT | {"outcome": "failed"}, "acknowledged", "missing", "failed"),
        (
            SENT | {"outcome": "unknown", "offset": -1},
            "acknowledged",
            "missing",
            "no answer is known, orders-0",
        ),
        (STORED | {"message_id": "m-2"}, "stored", "absent", "holds another message: m-2"),
        (STORED | {"is_control": True}, "stored", "missing", "control record"),
        (
            {"message_id": "m-1", "consumer_group": "other", "processed_at": "2026-11-20T10:00:00Z"},
            "written",
            "absent",
            "set aside, of another group: other",
        ),
        ({"message_id": "m-1", "outcome": "failed"}, "written", "missing", "outcome failed"),
    ],
)
def test_what_a_row_does_not_prove_is_not_seen(
    row: dict[str, Any], stage: str, state: str, words: str
) -> None:
    """A failed send is no acknowledgement; another's record, or another group's row, is not this message's."""
    ledger = {"acknowledged": "produced", "stored": "log", "written": "delivered"}[stage]

    found = {one["stage"]: one for one in journey({ledger: [row]}, message_id="m-1", group="loader")}

    assert found[stage]["state"] == state
    assert words in found[stage]["steps"][0]["words"]


def test_a_message_of_another_window_is_not_judged_here(contract: Contract, window: Window) -> None:
    """The coverage of this window says nothing about it, so no class is told."""
    document = _document(contract, window, judged=LOST | {"is_judged_here": False}, breaks=())
    judgement = document["messages"][0]["judgement"]

    assert (judgement["class"], judgement["disposition"], judgement["flags"]) == (None, None, [])
    assert "belongs to the window of its first attempt, 2026-11-20T10:00:00Z" in render_trace(document)


def test_ids_stay_on_their_line(contract: Contract, window: Window) -> None:
    """Ids come from other people's systems: line breaks and control characters are shown, not obeyed."""
    document = _document(contract, window, message_id="m\n\x1b[2J", judged=None)

    text = render_trace(document)

    assert "\x1b" not in text
    assert text.startswith("m\\u000a\\u001b[2J  in orders")
    assert "nothing ties these rows to a message" in text


def test_a_key_is_looked_for_as_it_is_and_hashed() -> None:
    """A ledger may hold the key itself or its hash; others are not guessed."""
    digests = TraceRequest(RequestedBy.KEY, "k").digests()

    assert digests[0] == "k"
    assert [len(digest) for digest in digests[1:]] == [64, 40, 32]


def test_positions_are_printed_under_their_own_names(contract: Contract, window: Window) -> None:
    """A range says where it begins, a row what its engine wrote beside it; a second position is a stage of its own."""
    batch = {**COMMIT, "first_offset": 10, "metadata": '{"batch": 7}'}
    group = {**COMMIT, "consumer_group": "connect-orders"}
    ledger_rows = {Ledger.PRODUCED: SENT, Ledger.COMMITTED: batch, Ledger.MIRRORED: group}

    document = _document(
        contract, window, ledger_rows={ledger: LedgerRows((row,), 1) for ledger, row in ledger_rows.items()}
    )

    jsonschema.Draft202012Validator(trace_schema()).validate(document)
    lines = render_trace(document).splitlines()
    assert (
        '  committed     2026-11-20T10:00:05Z      orders-0 from 10 up to 20, metadata: {"batch": 7}' in lines
    )
    assert "  mirrored      2026-11-20T10:00:05Z      orders-0 up to 20" in lines


def test_positions_are_printed_as_their_system_writes_them(contract: Contract, window: Window) -> None:
    """The document keeps the number, by which everything is compared, and says the form."""
    kahadb = {"kind": "kahadb", "path": "data", "destination": "orders"}
    known = contract.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for ledger in ("log", "committed"):
        known["ledgers"][ledger] = {"source": kahadb}
    of_queue = Contract.model_validate({**known, "consumption": "queue"})
    number = (2 << 32) + 1045
    ledger_rows = {
        Ledger.LOG: {**STORED, "offset": number},
        Ledger.COMMITTED: {**COMMIT, "first_offset": number, "committed_offset": number + 1},
    }

    document = _document(
        of_queue,
        window,
        message_id=None,
        positions=(("orders", 0, number),),
        ledger_rows={ledger: LedgerRows((row,), 1) for ledger, row in ledger_rows.items()},
    )
    text = render_trace(document)

    jsonschema.validate(document, trace_schema())
    assert document["position_form"] == "file:offset"
    assert document["messages"][0]["positions"] == [{"topic": "orders", "partition": 0, "offset": number}]
    assert text.startswith("orders-0 offset 2:1045")
    assert "orders-0 from 2:1045 up to 2:1046" in text
    assert str(number) not in text

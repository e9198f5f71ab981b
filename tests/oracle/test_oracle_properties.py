"""What must hold of every statement, whatever the history: checked on the oracle itself, without Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.engine.histories import GRACE_END, START, WINDOW, contract_for
from tests.oracle import OracleCoverage, judge_history
from tests.oracle.balance import DISPOSITIONS, OFFSET_STATES
from tests.oracle.faults import Faults, draw_faults
from tests.oracle.random_histories import COLUMNS, NOT_CARRIED, RandomHistory, arbitrary, histories, plausible
from tests.oracle.simulating import Simulation

from tieout.model import Ledger

HISTORIES = list(histories(seed=7, count=150))
RANK = {"KEPT": 0, "PENDING": 1, "UNKNOWN": 2, "BROKEN": 3}
NO_FAULTS = Faults(**dict.fromkeys(Faults.__dataclass_fields__, 0.0))


def judged(history: RandomHistory) -> dict[str, Any]:
    """Return the oracle's statement of a random history."""
    return judge_history(history.contract, history.window, history.rows, history.coverage, history.present)


def assert_adds_up(statement: dict[str, Any]) -> None:
    """Check every identity of taxonomy section 5 on every partition."""
    for numbers in statement["partitions"]:
        kinds = ("acked_attempts", "failed_attempts", "unknown_attempts")
        assert numbers["attempts"] == sum(numbers[kind] for kind in kinds)
        assert numbers["messages"] == sum(numbers[kind] for kind in ("accepted", "unproven", "failed"))
        assert numbers["accepted"] == sum(numbers[kind] for kind in DISPOSITIONS)
        effects = ("first_effects", "further_effects", "phantom_effects", "unverifiable_effects")
        assert numbers["effects"] == sum(numbers[kind] for kind in effects)
        offsets = numbers["offsets"]
        if offsets is not None:
            assert offsets["to"] - offsets["from"] == sum(offsets[state] for state in OFFSET_STATES)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(plausible)
def test_a_plausible_history_adds_up(history: RandomHistory) -> None:
    """The identities hold for whatever the simulated pipeline does."""
    assert_adds_up(judged(history))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(arbitrary)
def test_an_arbitrary_history_adds_up(history: RandomHistory) -> None:
    """The identities hold for rows that make no sense, too."""
    assert_adds_up(judged(history))


def test_attempts_are_messages_and_resends_over_all_windows() -> None:
    """Over a whole topic and all windows attempts = messages + resends."""
    wide = timedelta(days=400)
    tried = 0
    for history in HISTORIES:
        rows = history.rows[Ledger.PRODUCED]
        if not rows or any(row.get("attempted_at") is None for row in rows):
            continue
        tried += 1

        statement = judged(replace(history, window=history.window.widened(wide, wide)))

        totals = {
            name: sum(one[name] for one in statement["partitions"])
            for name in ("attempts", "messages", "resends")
        }
        assert totals["attempts"] == len(rows) == totals["messages"] + totals["resends"]
    assert tried > 40


def test_the_order_of_rows_changes_nothing() -> None:
    """The same rows in another order are the same evidence."""
    for history in HISTORIES:
        rows = {ledger: list(found) for ledger, found in history.rows.items()}
        for found in rows.values():
            Random(history.name).shuffle(found)  # noqa: S311 - repeatable, not secret

        assert judged(replace(history, rows=rows)) == judged(history), history.name


def _doubled_effect(history: RandomHistory) -> RandomHistory | None:
    effects = [row for row in history.rows.get(Ledger.DELIVERED, []) if row.get("outcome") in (None, "ok")]
    if not effects:
        return None
    return _with_row(history, Ledger.DELIVERED, dict(effects[0]))


def _phantom(history: RandomHistory) -> RandomHistory | None:
    if Ledger.DELIVERED not in history.rows:
        return None
    row = {
        "message_id": "never",
        "payload_hash": "h-never",
        "processed_at": START + timedelta(minutes=5),
        "outcome": "ok",
    }
    return _with_row(history, Ledger.DELIVERED, row)


def _loss(history: RandomHistory) -> RandomHistory | None:
    row = {
        "message_id": "never",
        "payload_hash": "h-never",
        "producer_id": "p9",
        "producer_session": "s9",
        "attempted_at": START + timedelta(minutes=5),
        "outcome": "acked",
    }
    return _with_row(history, Ledger.PRODUCED, row)


def _with_row(history: RandomHistory, ledger: Ledger, row: dict[str, Any]) -> RandomHistory:
    return replace(history, rows={**history.rows, ledger: [*history.rows[ledger], row]})


@pytest.mark.parametrize("worsen", [_doubled_effect, _phantom, _loss])
def test_one_more_break_never_improves_the_verdict(
    worsen: Callable[[RandomHistory], RandomHistory | None],
) -> None:
    """A history with one more duplicate, phantom or loss is judged as before or worse."""
    tried = 0
    for history in HISTORIES:
        worse = worsen(history)
        before = judged(history)
        is_diluted = {"late_ratio", "loss_ratio", "duplicate_ratio"} & set(before["reasons"])
        delivered = history.rows.get(Ledger.DELIVERED, [])
        shows_ids = history.contract.identity == "message_id" and all(
            row.get("message_id") for row in delivered
        )
        if worse is None or is_diluted or not (shows_ids or worsen is _doubled_effect):
            continue  # what shows no id may be the message that went nowhere
        after = judged(worse)
        if {"ids", "unconfirmed:CORRUPTED_VALUE"} & set(after["reasons"]):
            continue  # no id, or no form of a hash, is on both sides: nobody knows whether they are written alike
        tried += 1

        assert RANK[after["verdict"]] >= RANK[before["verdict"]], history.name
    assert tried > 40


def test_a_loss_that_is_covered_breaks_at_least_once_and_more() -> None:
    """A fully covered history with an acked message that went nowhere is never KEPT, PENDING or UNKNOWN."""
    tried = 0
    for history in HISTORIES:
        if history.contract.guarantee == "at_most_once" or history.contract.identity != "message_id":
            continue
        if history.contract.consumption == "queue":
            continue  # what nothing acknowledges is never lost there
        if any(row.get("message_id") is None for row in history.rows.get(Ledger.DELIVERED, [])):
            continue  # what shows no id may be the message that went nowhere
        full = {ledger: OracleCoverage(None, GRACE_END, True, True) for ledger in history.rows}
        worse = _loss(replace(history, coverage=full))
        after = judged(worse)
        if "ids" in after["reasons"]:
            continue  # no id is on both sides, so nobody knows whether they are written alike
        tried += 1

        assert after["verdict"] == "BROKEN", history.name
    assert tried > 15


@pytest.mark.parametrize(
    "cut",
    [
        OracleCoverage(None, None, True, False),
        OracleCoverage(None, START + timedelta(minutes=30), True, True),
        OracleCoverage(None, GRACE_END, False, True),
        OracleCoverage(START + timedelta(minutes=30), GRACE_END, True, True),
    ],
    ids=["nothing", "half", "unsound", "begins late"],
)
def test_less_coverage_never_makes_a_verdict_kept(cut: OracleCoverage) -> None:
    """A declared ledger cut short can only take KEPT away, whatever the verdict was before."""
    tried = 0
    for history in HISTORIES:
        for ledger in history.rows:
            tried += 1

            after = judged(replace(history, coverage={**history.coverage, ledger: cut}))

            assert after["verdict"] in ("BROKEN", "UNKNOWN"), f"{history.name} {ledger}"
    assert tried > 300


def test_an_absent_declared_ledger_never_leaves_kept() -> None:
    """Zero of zero with an absent ledger is not complete."""
    for history in HISTORIES:
        for ledger in history.rows:
            rows = {name: found for name, found in history.rows.items() if name != ledger}

            assert judged(replace(history, rows=rows))["verdict"] in ("BROKEN", "UNKNOWN"), history.name


def _run(seed: int, faults: Faults) -> RandomHistory:
    """Return the fully covered evidence of a pipeline with these faults, under an exactly_once contract."""
    rng = Random(seed)  # noqa: S311 - repeatable, not secret
    simulation = Simulation(rng, faults, rng.randint(1, 3), rng.random() < 0.5, is_compacted=False)
    simulation.run(rng.randint(1, 12))
    rows = {
        Ledger.PRODUCED: simulation.produced,
        Ledger.DELIVERED: simulation.delivered,
        Ledger.COMMITTED: simulation.committed,
        Ledger.LOG: simulation.log_rows(has_ids=True),
        Ledger.FILTERED: simulation.filtered,
        Ledger.DEAD_LETTERS: simulation.dead_letters,
    }
    return RandomHistory(
        name=str(seed),
        contract=contract_for([*rows], {}),
        window=WINDOW,
        rows=rows,
        coverage={ledger: OracleCoverage(None, GRACE_END, True, True) for ledger in rows},
        present={ledger: COLUMNS[ledger] - NOT_CARRIED.get(ledger, frozenset()) for ledger in rows},
    )


def test_a_pipeline_without_faults_keeps_its_guarantee() -> None:
    """No false alarm: whatever was produced was delivered once, so nothing is broken and everything is explained."""
    fine = {"DELIVERED", "NOT_SENT", "COMMIT_STALE"}
    for seed in range(60):
        statement = judged(_run(seed, NO_FAULTS))

        assert statement["verdict"] in ("KEPT", "PENDING"), (seed, statement["reasons"])
        assert set(statement["classes"]) <= fine | {"IN_FLIGHT"}, (seed, statement["classes"])


def test_a_consistent_log_explains_all_its_offsets() -> None:
    """Whatever producers and consumers do wrong, a log that lost and changed nothing leaves nothing unexplained."""
    tried = 0
    for seed in range(60):
        drawn = draw_faults(Random(seed))  # noqa: S311 - repeatable, not secret
        faults = replace(drawn, lost_by_the_broker=0.0, overwritten=0.0)
        statement = judged(_run(seed, faults))
        tried += sum(numbers["messages"] > 0 for numbers in statement["partitions"])

        assert not any(numbers["unexplained"] for numbers in statement["partitions"]), seed
    assert tried > 40


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("skipped", "LOST"),
        ("doubled", "OUTPUT_DUPLICATE"),
        ("corrupted_effect", "CORRUPTED_VALUE"),
        ("corrupted_in_the_log", "CORRUPTED_VALUE"),
        ("retried_in_the_log", "LOG_DUPLICATE"),
        ("commits_back", "COMMIT_REGRESSION"),
        ("phantom", "PHANTOM_UNKNOWN"),
        ("late", "LATE"),
        ("set_aside", "FILTERED"),
        ("unknown", "RECOVERED"),
        ("failed", "NOT_SENT"),
    ],
)
def test_one_kind_of_fault_is_found_as_itself(fault: str, name: str) -> None:
    """With one fault switched on its class is found, and no class that only other faults cause."""
    found: set[str] = set()
    for seed in range(15):
        statement = judged(_run(seed, replace(NO_FAULTS, **{fault: 0.4})))
        found |= {*statement["classes"], *statement["flags"]}

    assert name in found
    others = {
        "LOST",
        "CORRUPTED_VALUE",
        "PHANTOM_UNKNOWN",
        "PHANTOM_ABORTED",
        "COMMIT_REGRESSION",
        "LATE",
    } - {name}
    assert not found & others, found & others


def _well(seed: int) -> RandomHistory:
    """Return the evidence of a pipeline without faults."""
    return _run(seed, NO_FAULTS)


def _with_effects(
    history: RandomHistory, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> RandomHistory:
    delivered = [change(row) for row in history.rows[Ledger.DELIVERED]]
    return replace(history, rows={**history.rows, Ledger.DELIVERED: delivered})


def test_a_sink_that_writes_null_for_a_value_breaks() -> None:
    """Null is a value: an effect without what was sent is corrupted, and one of unknown content is not judged."""
    tried = 0
    for seed in range(40):
        history = _well(seed)
        if "DELIVERED" not in judged(history)["classes"]:
            continue
        tried += 1
        nulled = _with_effects(history, lambda row: row | {"payload_hash": None})
        unknown = _with_effects(history, lambda row: row | {"payload_hash": None, "content": "unknown"})

        assert judged(nulled)["verdict"] == "BROKEN", seed
        assert judged(unknown)["verdict"] in ("KEPT", "PENDING"), seed
    assert tried > 25


def test_ids_of_which_none_meets_another_prove_nothing() -> None:
    """Ids that the output writes as decimals are neither lost nor made up."""
    tried = 0
    for seed in range(40):
        history = _with_effects(_well(seed), lambda row: row | {"message_id": f"{row['message_id']}.0"})
        if not history.rows[Ledger.DELIVERED]:
            continue
        tried += 1

        statement = judged(history)

        assert statement["verdict"] == "UNKNOWN", (seed, statement["reasons"])
    assert tried > 25


@pytest.mark.parametrize("ahead", [timedelta(seconds=2), timedelta(minutes=45), timedelta(hours=4)])
def test_effects_before_their_sends_are_neither_kept_nor_lost(ahead: timedelta) -> None:
    """A clock that is behind, by seconds or by a time zone, leaves nobody able to tell."""
    tried = 0
    for seed in range(40):
        history = _well(seed)
        first = {row["message_id"]: row["attempted_at"] for row in reversed(history.rows[Ledger.PRODUCED])}
        history = _with_effects(
            history, lambda row, first=first: row | {"processed_at": first[row["message_id"]] - ahead}
        )
        statement = judged(history)
        counts = {
            name: sum(one[name] for one in statement["partitions"]) for name in ("messages", "delivered")
        }
        if not counts["messages"] or "IN_FLIGHT" in statement["flags"]:
            continue
        tried += 1

        assert counts["delivered"] == 0, seed
        assert "LOST" not in statement["flags"], seed
        assert statement["verdict"] in ("UNKNOWN", "KEPT"), (seed, statement["reasons"])
        is_doubted = any(one["unverifiable"] for one in statement["partitions"])
        assert is_doubted == (statement["verdict"] == "UNKNOWN"), (seed, statement["reasons"])
    assert tried > 15


@pytest.mark.parametrize("state", ["aborted", "open"])
def test_what_no_committed_reader_sees_sets_nothing_aside(state: str) -> None:
    """Dead letters and filters of an aborted transaction leave messages lost, those of an open one unverifiable."""
    found: set[str] = set()
    for seed in range(30):
        history = _run(seed, replace(NO_FAULTS, set_aside=0.4))
        changed = {
            ledger: [row | {"transaction_state": state} for row in history.rows[ledger]]
            for ledger in (Ledger.FILTERED, Ledger.DEAD_LETTERS)
        }
        found |= set(judged(replace(history, rows={**history.rows, **changed}))["flags"])

    assert not found & {"FILTERED", "DEAD_LETTERED"}
    assert ("LOST" in found) == (state == "aborted")
    assert ("UNVERIFIABLE" in found) == (state == "open")


def test_an_order_of_keys_that_nobody_can_tell_is_never_kept() -> None:
    """Without the session's numbers a descent between two partitions is unknown; with them it is broken."""
    seen: set[tuple[str, str]] = set()
    for seed in range(80):
        history = _well(seed)
        late = max((row["processed_at"] for row in history.rows[Ledger.DELIVERED]), default=START)
        turned = _with_effects(
            history,
            lambda row, late=late: row | {"processed_at": late - (row["processed_at"] - START)},
        )
        contract = contract_for([*history.rows], {"ordering": "key", "guarantee": "at_most_once"})
        numbered = judged(replace(turned, contract=contract))
        produced = [row | {"sequence": None} for row in history.rows[Ledger.PRODUCED]]
        bare = judged(replace(turned, contract=contract, rows={**turned.rows, Ledger.PRODUCED: produced}))
        seen.add((numbered["verdict"], bare["verdict"]))

        assert numbered["verdict"] != "BROKEN" or bare["verdict"] in ("BROKEN", "UNKNOWN"), seed
    assert ("BROKEN", "UNKNOWN") in seen

"""The checks on runs in a real PostgreSQL: every rule sees what it is for, and nothing else."""

# ruff: noqa: S608 - the tests' own SQL

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.store.checked import (
    RUN,
    break_of,
    checked,
    contract_of,
    incident_of,
    not_passed,
    published,
    statement_of,
)
from tests.store.examples import WINDOW, command, database_url, query, run_id

from tieout.checks import check_statement, data_docs, data_docs_page
from tieout.checks.declaring import declared_for
from tieout.errors import StoreError, UsageError
from tieout.model import Guarantee, Severity, Verdict
from tieout.shipped import EXPECTATIONS, shipped
from tieout.verdicts import final_verdict


@pytest.fixture(scope="module")
def shared_url(postgres_url: str, migrated_template: str) -> Iterator[str]:
    """The URL of one database for the tests that damage nothing: a run replaces the one before."""
    command(postgres_url, f"CREATE DATABASE checks TEMPLATE {migrated_template}")
    yield database_url(postgres_url, "checks")
    command(postgres_url, "DROP DATABASE checks WITH (FORCE)")


AMO, ALO, EO = (guarantee.value for guarantee in Guarantee)
EVERY = (AMO, ALO, EO)

BROKEN_CLASSES = [
    *((g, name, rule) for g in EVERY for name, rule in (
        ("PHANTOM_UNKNOWN", "phantom_unknown"),
        ("PHANTOM_ABORTED", "phantom_aborted"),
        ("PHANTOM_UNCOMMITTED", "phantom_uncommitted"),
        ("CORRUPTED_VALUE", "corrupted"),
        ("CORRUPTED_KEY", "corrupted"),
        ("CORRUPTED_HEADER", "corrupted"),
        ("CORRUPTED_TIMESTAMP", "corrupted"),
    )),
    *((g, name, rule) for g in (ALO, EO) for name, rule in (
        ("LOST", "lost"),
        ("TORN_TRANSACTION", "lost"),
        ("COMMIT_AHEAD", "commit_ahead"),
        ("LOG_IDENTITY_CONFLICT", "log_damaged"),
        ("LOG_TRUNCATION", "log_damaged"),
    )),
    *((g, "OUTPUT_DUPLICATE", "output_duplicate") for g in (AMO, EO)),
    (AMO, "COMMIT_REGRESSION", "commit_regression"),
]  # fmt: skip

WARNED_CLASSES = [
    *(
        (g, name, name.lower())
        for g in EVERY
        for name in (
            "SKIPPED",
            "COMMIT_OUT_OF_RANGE",
            "COMMIT_STALE",
            "COMMIT_GAP",
            "POSITION_DISAGREEMENT",
        )
    ),
    *((g, "MISROUTED", "misrouted_noted") for g in EVERY),
    *((g, name, "late_noted") for g in EVERY for name in ("LATE", "OVERDUE")),
    *((g, "COMMIT_REGRESSION", "commit_regression") for g in (ALO, EO)),
    *((AMO, name, "log_damaged") for name in ("LOG_IDENTITY_CONFLICT", "LOG_TRUNCATION")),
    (AMO, "REDELIVERY", "redelivery"),
    (EO, "LOG_DUPLICATE", "log_duplicate"),
    (EO, "set_aside_and_delivered", "set_aside_and_delivered"),
]

TOLERATED_CLASSES = [
    *((g, name) for g in EVERY for name in ("REORDER_PRODUCER", "REORDER_CONSUMER", "REORDER_OUTPUT")),
    *((g, "REDELIVERY") for g in (ALO, EO)),
    *((g, "LOG_DUPLICATE") for g in (AMO, ALO)),
    (ALO, "OUTPUT_DUPLICATE"),
    (ALO, "POSSIBLE_DUPLICATE"),
    (AMO, "COMMIT_AHEAD"),
]

DAMAGED_ROWS = {
    "the run says another verdict": (
        "update tieout.run set verdict = 'PENDING'",
        {"run_matches_contract": "error"},
    ),
    "a partition's count was changed": (
        "update tieout.statement_partition set resends = 2 where partition = 0",
        {"rows_as_stated": "error"},
    ),
    "a count was changed": (
        "update tieout.statement_count set count = 5 where name = 'DELIVERED'",
        {"rows_as_stated": "error"},
    ),
    "a partition's row is another's": (
        "update tieout.statement_partition set partition = 5 where partition = 1",
        {"rows_as_stated": "error"},
    ),
    "a count has another name": (
        "update tieout.statement_count set name = 'RECOVERED' where name = 'FILTERED'",
        {"rows_as_stated": "error"},
    ),
    "an incident that no break belongs to": (
        "insert into tieout.incident (run_id, incident_id, class, breaks)"
        f" values ('{RUN}', 'i', 'DELIVERED', 1)",
        {"breaks_counted": "error"},
    ),
    "attempts do not add up": (
        "update tieout.statement_partition set attempts = 13 where partition = 1",
        {"rows_as_stated": "error", "attempts_add_up": "error"},
    ),
    "messages do not add up": (
        "update tieout.statement_partition set messages = 12 where partition = 1",
        {"rows_as_stated": "error", "messages_add_up": "error"},
    ),
    "accepted messages do not add up": (
        "update tieout.statement_partition set filtered = 2 where partition = 1",
        {"rows_as_stated": "error", "accepted_add_up": "error"},
    ),
    "effects do not add up": (
        "update tieout.statement_partition set effects = 7 where partition = 1",
        {"rows_as_stated": "error", "effects_add_up": "error"},
    ),
    "offsets do not add up": (
        "update tieout.statement_partition set offsets = jsonb_set(offsets, '{to}', '112')"
        " where partition = 0",
        {"offsets_add_up": "error"},
    ),
    "offsets have no end": (
        "update tieout.statement_partition set offsets = offsets - 'to' where partition = 0",
        {"offsets_add_up": "error"},
    ),
    "a position nobody can vouch for, under a verdict that was kept": (
        """update tieout.statement_partition set offsets = offsets || '{"delivered": 6, "unverifiable": 1}'"""
        " where partition = 0",
        {"unverifiable_is_admitted": "error"},
    ),
    "unexplained positions that cancel between partitions": (
        "update tieout.statement_partition set unexplained = case partition when 0 then 1 else -1 end"
        " where partition is not null",
        {"rows_as_stated": "error", "offsets_add_up": "error", "nothing_unexplained": "error"},
    ),
    "a negative count": (
        "alter table tieout.statement_partition drop constraint statement_partition_counts_check;"
        "update tieout.statement_partition set resends = -1 where partition = 1",
        {"rows_as_stated": "error", "counts_not_negative": "error"},
    ),
    "a missing count": (
        "alter table tieout.statement_partition alter resends drop not null;"
        "update tieout.statement_partition set resends = null where partition = 1",
        {"rows_as_stated": "error", "counts_not_negative": "error"},
    ),
    "a missing number of lost messages": (
        "alter table tieout.statement_partition alter lost drop not null;"
        "update tieout.statement_partition set lost = null where partition = 1",
        {
            "rows_as_stated": "error",
            "counts_not_negative": "error",
            "accepted_add_up": "error",
            "lost": "error",
        },
    ),
    "lost messages in a partition's row only": (
        "update tieout.statement_partition set lost = 1, delivered = 5 where partition = 1",
        {"rows_as_stated": "error", "lost": "fail"},
    ),
    "lost messages in an incident only": (
        f"insert into tieout.incident (run_id, incident_id, class, breaks) values ('{RUN}', 'i', 'LOST', 1)",
        {"breaks_counted": "error", "lost": "fail"},
    ),
    "a lost message in a break only": (
        "insert into tieout.break (run_id, break_id, class, flags, severity, evidence)"
        f" values ('{RUN}', 'b', 'LOST', '[]', 'critical', '{{}}')",
        {"breaks_counted": "error", "lost": "fail"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("guarantee", EVERY)
def test_passes_every_rule_on_a_run_that_kept_its_guarantee(shared_url: str, guarantee: str) -> None:
    """A statement with all legal dispositions, resends and nobody's partition passes every declared rule."""
    contract = contract_of(guarantee)
    published(shared_url, contract, statement_of(contract))

    report = check_statement(shared_url, RUN, contract)

    declared = declared_for(Guarantee(guarantee), shipped(EXPECTATIONS))
    assert not_passed(report) == {}
    assert [result.rule for result in report.results] == [rule.rule for rule in declared.rules]
    assert (report.suite, report.suite_digest) == (f"statement+{guarantee}", declared.digest)
    assert report.gx_version == "1.24.1"
    assert final_verdict(Verdict.KEPT, report.results) is Verdict.KEPT


@pytest.mark.parametrize(("guarantee", "name", "rule"), BROKEN_CLASSES)
def test_breaks_the_verdict_for_a_class_that_the_guarantee_forbids(
    shared_url: str, guarantee: str, name: str, rule: str
) -> None:
    """A single forbidden break in a run that is called KEPT fails its rule, and only that."""
    contract = contract_of(guarantee)
    published(shared_url, contract, statement_of(contract, classes={name: 1}))

    report = check_statement(shared_url, RUN, contract)

    assert not_passed(report) == {rule: "fail"}
    assert final_verdict(Verdict.KEPT, report.results) is Verdict.BROKEN
    assert report.disagrees_with(Verdict.KEPT)
    assert not report.disagrees_with(Verdict.BROKEN)


@pytest.mark.parametrize(("name", "rule"), [(name, rule) for g, name, rule in BROKEN_CLASSES if g == EO])
def test_breaks_the_verdict_for_a_forbidden_flag(shared_url: str, name: str, rule: str) -> None:
    """A class that holds beside a message's primary one counts as much."""
    contract = contract_of(EO)
    published(shared_url, contract, statement_of(contract, flags={name: 1}))

    assert checked(shared_url, contract) == {rule: "fail"}


@pytest.mark.parametrize(
    ("lost", "unconfirmed", "observed", "status", "verdict"),
    [
        (3, 0, "3", "fail", Verdict.BROKEN),
        (3, 2, "3, 2 of them unconfirmed", "fail", Verdict.BROKEN),
        (3, 3, "3, 3 of them unconfirmed", "error", Verdict.UNKNOWN),
    ],
)
def test_leaves_open_what_the_evidence_does_not_cover(
    shared_url: str, lost: int, unconfirmed: int, observed: str, status: str, verdict: Verdict
) -> None:
    """Breaks that are all unconfirmed make the verdict UNKNOWN; one that is confirmed makes it BROKEN."""
    contract = contract_of(EO)
    both = {"LOST": lost}
    statement = statement_of(contract, classes=both, flags=both, unconfirmed={"LOST": unconfirmed, "LATE": 9})
    published(shared_url, contract, statement)

    report = check_statement(shared_url, RUN, contract)

    assert not_passed(report) == {"lost": status}
    assert [r.observed for r in report.results if r.rule == "lost"] == [observed]
    assert final_verdict(Verdict.KEPT, report.results) is verdict


@pytest.mark.parametrize(("guarantee", "name", "rule"), WARNED_CLASSES)
def test_warns_of_a_class_that_the_guarantee_dislikes(
    shared_url: str, guarantee: str, name: str, rule: str
) -> None:
    """What is warned of fails a rule of severity warning and leaves the verdict."""
    contract = contract_of(guarantee)
    published(shared_url, contract, statement_of(contract, classes={name: 1}))

    report = check_statement(shared_url, RUN, contract)

    assert not_passed(report) == {rule: "fail"}
    assert {r.severity for r in report.results if r.rule == rule} == {Severity.WARNING}
    assert final_verdict(Verdict.KEPT, report.results) is Verdict.KEPT


@pytest.mark.parametrize(("guarantee", "name"), TOLERATED_CLASSES)
def test_passes_a_class_that_the_guarantee_allows(shared_url: str, guarantee: str, name: str) -> None:
    """What is fine or only reported fails nothing."""
    contract = contract_of(guarantee)
    published(shared_url, contract, statement_of(contract, classes={name: 1}))

    assert checked(shared_url, contract) == {}


@pytest.mark.parametrize(
    ("ordering", "name", "expected"),
    [
        ("partition", "REORDER_PRODUCER", {"reordered": "fail"}),
        ("partition", "REORDER_CONSUMER", {"reordered": "fail"}),
        ("partition", "REORDER_OUTPUT", {"reordered": "fail"}),
        ("key", "REORDER_OUTPUT", {"reordered": "fail"}),
        ("key", "MISROUTED", {"misrouted": "fail"}),
        ("partition", "MISROUTED", {"misrouted_noted": "fail"}),
    ],
)
def test_holds_the_order_that_the_contract_asks_for(
    shared_url: str, ordering: str, name: str, expected: dict[str, str]
) -> None:
    """Reordering breaks where an order is promised, another partition where it is promised by key."""
    contract = contract_of(ALO, ordering=ordering)
    published(shared_url, contract, statement_of(contract, classes={name: 1}))

    assert checked(shared_url, contract) == expected


# Of the two partitions 18 messages are accepted, 12 effects are first ones.
@pytest.mark.parametrize(
    ("guarantee", "budgets", "counts", "classes", "expected"),
    [
        (AMO, {}, {"delivered": 5, "lost": 1}, {"LOST": 1}, {"loss_noted": "fail"}),
        (AMO, {"loss_ratio": 0.06}, {"delivered": 5, "lost": 1}, {"LOST": 1}, {}),
        (AMO, {"loss_ratio": 0.05}, {"delivered": 5, "lost": 1}, {"LOST": 1}, {"loss_budget": "fail"}),
        (ALO, {}, {"effects": 7, "further_effects": 1}, {"OUTPUT_DUPLICATE": 1}, {"duplicate_noted": "fail"}),
        (ALO, {"duplicate_ratio": 0.25}, {"effects": 9, "further_effects": 3}, {"OUTPUT_DUPLICATE": 3}, {}),
        (
            ALO,
            {"duplicate_ratio": 0.24},
            {"effects": 9, "further_effects": 3},
            {"OUTPUT_DUPLICATE": 3},
            {"duplicate_budget": "fail"},
        ),
        (ALO, {"duplicate_ratio": 0}, {}, {}, {}),
        (EO, {"late_ratio": 0.5}, {}, {"LATE": 5, "OVERDUE": 4}, {}),
        (EO, {"late_ratio": 0.5}, {}, {"LATE": 5, "OVERDUE": 5}, {"late_budget": "fail"}),
        (EO, {}, {}, {"LATE": 1}, {"late_noted": "fail"}),
        (EO, {"late_ratio": 0}, {}, {"LATE": 1}, {"late_budget": "fail"}),
    ],
)
def test_holds_budgets_over_all_partitions(
    shared_url: str,
    guarantee: str,
    budgets: dict[str, float],
    counts: dict[str, int],
    classes: dict[str, int],
    expected: dict[str, str],
) -> None:
    """A declared budget breaks where exceeded and not where met; an undeclared one warns above 0."""
    contract = contract_of(guarantee, budgets=budgets)
    published(shared_url, contract, statement_of(contract, counts=counts, classes=classes))

    assert checked(shared_url, contract) == expected


def test_what_the_run_could_not_confirm_exceeds_no_budget(shared_url: str) -> None:
    """It is no proof, and leaves open whether the budget is kept."""
    contract = contract_of(AMO, budgets={"loss_ratio": 0.1})
    lost = {"counts": {"lost": 5, "delivered": 4}, "classes": {"LOST": 5}}
    published(shared_url, contract, statement_of(contract, **lost, unconfirmed={"LOST": 5}))

    assert checked(shared_url, contract)["loss_budget"] == "error"


def test_something_of_nothing_exceeds_every_budget(shared_url: str) -> None:
    """Further effects without first ones are more than any share."""
    contract = contract_of(ALO, budgets={"duplicate_ratio": 1000})
    statement = statement_of(contract)
    statement["partitions"] = statement["partitions"][2:]
    statement["partitions"][0] |= {"effects": 1, "further_effects": 1}
    published(shared_url, contract, statement)

    assert checked(shared_url, contract) == {"duplicate_budget": "fail"}


@pytest.mark.parametrize(
    ("annotations", "flags", "rows", "expected"),
    [
        ([], {}, [[]], {"commit_regression": "fail"}),
        ([], {"annotated": 1}, [["annotated"]], {"commit_regression": "fail"}),
        (["loader"], {}, [[]], {"commit_regression": "fail"}),
        (["loader"], {"annotated": 1}, [["annotated"]], {}),
        (["others"], {"annotated": 1}, [["annotated"]], {"commit_regression": "fail"}),
        (["loader"], {"annotated": 1}, [["annotated"], []], {"commit_regression": "fail"}),
    ],
)
def test_excuses_regressions_that_an_operator_announced(
    shared_url: str,
    annotations: list[str],
    flags: dict[str, int],
    rows: list[list[str]],
    expected: dict[str, str],
) -> None:
    """A regression is excused where it is called annotated and the contract knows of this group's reset."""
    reported = [
        {"at": "2026-11-20T10:30:00Z", "kind": "offset_reset", "group": group} for group in annotations
    ]
    contract = contract_of(AMO, annotations=reported)
    name, amount = "COMMIT_REGRESSION", len(rows)
    statement = statement_of(
        contract,
        classes={name: amount},
        flags=flags,
        incidents=[incident_of(name, amount)],
        breaks_total=amount,
    )
    published(shared_url, contract, statement, [break_of(name, n, flags=row) for n, row in enumerate(rows)])

    assert checked(shared_url, contract) == expected


@pytest.mark.parametrize(("sql", "expected"), DAMAGED_ROWS.values(), ids=DAMAGED_ROWS)
def test_sees_damage_in_the_stored_rows(store_url: str, sql: str, expected: dict[str, str]) -> None:
    """A row that was changed after it was written is seen by the rules that it concerns, and by no other."""
    contract = contract_of(EO)
    published(store_url, contract, statement_of(contract))

    query(store_url, sql)

    assert checked(store_url, contract) == expected


@pytest.mark.parametrize("table", ["run", "statement_partition", "statement_count"])
@pytest.mark.parametrize("guarantee", EVERY)
def test_passes_no_rule_where_rows_are_missing(store_url: str, guarantee: str, table: str) -> None:
    """Without the run, its partitions or its counts every rule ends in an error: nothing is passed unseen."""
    contract = contract_of(guarantee)
    published(store_url, contract, statement_of(contract))

    query(store_url, f"delete from tieout.{table}")

    report = check_statement(store_url, RUN, contract)
    assert {result.status.value for result in report.results} == {"error"}
    assert final_verdict(Verdict.KEPT, report.results) is Verdict.UNKNOWN


def test_passes_no_rule_where_one_partition_is_missing(store_url: str) -> None:
    """Sums over the rows that are left would hide the one that is not."""
    contract = contract_of(EO)
    published(store_url, contract, statement_of(contract))

    query(store_url, "delete from tieout.statement_partition where partition = 0")

    assert set(checked(store_url, contract).values()) == {"error"}


def test_passes_an_empty_window_that_everything_covers(shared_url: str) -> None:
    """No partition and no count are what the statement says, and every ledger covers: that is KEPT."""
    contract = contract_of(EO)
    published(shared_url, contract, {**statement_of(contract), "partitions": [], "classes": {}})

    assert checked(shared_url, contract) == {}


@pytest.mark.parametrize(
    "coverage", [{}, {"produced": {"covers": True}}, {"produced": {"covers": True}, "delivered": {}}]
)
@pytest.mark.parametrize(
    ("verdict", "expected"), [("KEPT", "error"), ("PENDING", "error"), ("UNKNOWN", None)]
)
def test_refuses_a_verdict_without_coverage(
    shared_url: str, coverage: dict[str, Any], verdict: str, expected: str | None
) -> None:
    """KEPT and PENDING need every declared ledger to cover; UNKNOWN admits that one does not."""
    contract = contract_of(EO)
    statement = {**statement_of(contract), "partitions": [], "classes": {}, "verdict": verdict}
    published(shared_url, contract, {**statement, "coverage": coverage})

    assert checked(shared_url, contract).get("verdict_rests_on_coverage") == expected


@pytest.mark.parametrize(
    ("verdict", "counts", "classes", "expected"),
    [
        ("KEPT", {"delivered": 5, "in_flight": 1}, {"IN_FLIGHT": 1}, {"kept_has_nothing_in_flight": "error"}),
        ("KEPT", {}, {"IN_FLIGHT": 1}, {"kept_has_nothing_in_flight": "error"}),
        ("KEPT", {"delivered": 5, "in_flight": 1}, {}, {"kept_has_nothing_in_flight": "error"}),
        ("PENDING", {"delivered": 5, "in_flight": 1}, {"IN_FLIGHT": 1}, {}),
        (
            "KEPT",
            {"delivered": 5, "unverifiable": 1},
            {},
            {"unverifiable_is_admitted": "error", "unverifiable": "fail"},
        ),
        ("PENDING", {}, {"UNVERIFIABLE": 1}, {"unverifiable_is_admitted": "error", "unverifiable": "fail"}),
        (
            "KEPT",
            {"effects": 7, "unverifiable_effects": 1},
            {},
            {"unverifiable_is_admitted": "error", "unverifiable": "fail"},
        ),
        ("UNKNOWN", {"delivered": 5, "unverifiable": 1}, {}, {"unverifiable": "fail"}),
        ("KEPT", {}, {"POSSIBLE_DUPLICATE": 1}, {"possible_duplicate_is_admitted": "error"}),
        ("UNKNOWN", {}, {"POSSIBLE_DUPLICATE": 1}, {}),
    ],
)
def test_refuses_a_verdict_that_overlooks_its_own_counts(
    shared_url: str,
    verdict: str,
    counts: dict[str, int],
    classes: dict[str, int],
    expected: dict[str, str],
) -> None:
    """A verdict that claims more than the counts allow becomes UNKNOWN; one that admits them stays."""
    contract = contract_of(EO)
    published(shared_url, contract, statement_of(contract, counts=counts, classes=classes, verdict=verdict))

    report = check_statement(shared_url, RUN, contract)

    assert not_passed(report) == expected
    ends = Verdict.UNKNOWN if "error" in expected.values() else Verdict(verdict)
    assert final_verdict(Verdict(verdict), report.results) is ends


@pytest.mark.parametrize(
    ("guarantee", "effects", "verdict", "expected"),
    [
        (EO, "delivered", "KEPT", {"effects_known": "error"}),
        (EO, "delivered", "UNKNOWN", {}),
        (EO, "read", "KEPT", {}),
        (ALO, "delivered", "KEPT", {}),
    ],
)
def test_does_not_call_reads_an_exactly_once_output(
    shared_url: str, guarantee: str, effects: str, verdict: str, expected: dict[str, str]
) -> None:
    """With reads alone, exactly once is KEPT only where the contract says that reads are the effects."""
    source = {"source": {"kind": "files", "format": "jsonl", "path": "evidence.jsonl"}}
    contract = contract_of(guarantee, effects=effects, ledgers={"produced": source, "read": source})
    published(shared_url, contract, statement_of(contract, verdict=verdict))

    assert checked(shared_url, contract) == expected


def test_refuses_limits_of_another_contract(shared_url: str) -> None:
    """A run that another contract judged than the one whose limits are asked for is not checked."""
    judged_by, now = (
        contract_of(EO, budgets={"late_ratio": 0.1}),
        contract_of(EO, budgets={"late_ratio": 0.9}),
    )
    published(shared_url, judged_by, statement_of(judged_by))

    assert checked(shared_url, now) == {"run_matches_contract": "error"}


def test_passes_breaks_that_are_filed_and_counted(shared_url: str) -> None:
    """Breaks in their incident, their total and under their class are in order; only the loss fails."""
    contract = contract_of(EO)
    statement = statement_of(
        contract,
        counts={"delivered": 3, "lost": 3, "effects": 3, "first_effects": 3},
        classes={"DELIVERED": 9, "LOST": 3},
        incidents=[incident_of("LOST", 3)],
        breaks_total=3,
    )
    published(shared_url, contract, statement, [break_of("LOST", number) for number in range(3)])

    report = check_statement(shared_url, RUN, contract)

    assert not_passed(report) == {"lost": "fail"}
    assert [r.observed for r in report.results if r.rule == "lost"] == ["3"]


@pytest.mark.parametrize(
    "sql",
    [
        "update tieout.incident set breaks = 4",
        "update tieout.incident set class = 'LATE'",
        "update tieout.incident set class = 'DELIVERED'",
        "update tieout.break set class = 'LATE' where break_id = 'LOST-1'",
        "update tieout.break set class = 'DELIVERED' where break_id = 'LOST-1'",
        "update tieout.run set breaks_total = 2, statement = jsonb_set(statement, '{breaks_total}', '2')",
        "delete from tieout.break",
        "delete from tieout.incident",
    ],
)
def test_sees_breaks_that_are_not_filed_or_counted(store_url: str, sql: str) -> None:
    """Breaks, incidents, total and counts have to agree."""
    contract = contract_of(EO)
    statement = statement_of(
        contract, classes={"LOST": 3}, incidents=[incident_of("LOST", 3)], breaks_total=3
    )
    published(store_url, contract, statement, [break_of("LOST", number) for number in range(3)])

    query(store_url, sql)

    assert checked(store_url, contract)["breaks_counted"] == "error"


def test_leaves_other_runs_alone(store_url: str) -> None:
    """Only the rows of the run that is asked for are looked at."""
    contract = contract_of(EO)
    published(store_url, contract, statement_of(contract))
    published(store_url, contract, {**statement_of(contract, counts={"lost": 5}), "run_id": run_id(8)})

    assert checked(store_url, contract) == {}


def test_closes_its_connections(store_url: str) -> None:
    """After the checks no connection of theirs is left on the server."""
    contract = contract_of(EO)
    published(store_url, contract, statement_of(contract))

    checked(store_url, contract)

    left = query(
        store_url, "select count(*) as n from pg_stat_activity where application_name = 'tieout-checks'"
    )
    assert left == [{"n": 0}]


def test_leaves_no_files_behind(shared_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's default context makes a folder for a page of results that nobody opens; ours does not."""
    contract = contract_of(EO)
    published(shared_url, contract, statement_of(contract))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    checked(shared_url, contract)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", ["", "7", "x' or true --"])
def test_refuses_a_run_id_that_is_no_uuid(shared_url: str, wrong: str) -> None:
    """Nothing but a UUID gets into a query."""
    with pytest.raises(UsageError, match="expected a UUID"):
        check_statement(shared_url, wrong, contract_of(EO))


def test_raises_where_the_store_cannot_be_reached(shared_url: str) -> None:
    """An unreachable server is no finding: the task may be run again. The password is not told."""
    secret = urlsplit(shared_url).password or ""

    with pytest.raises(StoreError, match='database "nowhere" does not exist') as caught:
        check_statement(database_url(shared_url, "nowhere"), RUN, contract_of(EO))

    assert len(secret) > 8
    assert secret not in str(caught.value)


def test_raises_where_the_server_gives_up(store_url: str) -> None:
    """A query that the server cancels is no finding either."""
    contract = contract_of(EO)
    published(store_url, contract, statement_of(contract))
    query(store_url, "alter table tieout.statement_partition rename to slow")
    query(
        store_url,
        "create view tieout.statement_partition as select s.* from tieout.slow s, pg_sleep(5)",
    )

    with pytest.raises(StoreError, match="due to statement timeout; nothing was concluded"):
        check_statement(f"{store_url}?options=-cstatement_timeout%3D100", RUN, contract)


def test_data_docs_of_two_runs_are_one_site(store_url: str, tmp_path: Path) -> None:
    """Built by the library: an index, and a page for each run that says every rule in words and what was seen."""
    contract = contract_of(EO)
    published(store_url, contract, statement_of(contract))
    published(store_url, contract, statement_of(contract, run_id=run_id(8)))

    for run in (RUN, run_id(8)):
        index = data_docs(store_url, run, contract, WINDOW, tmp_path / "site")

    assert index.is_file()
    pages = [data_docs_page(tmp_path / "site", run) for run in (RUN, run_id(8))]
    for page in pages:
        assert page is not None
        assert "run_matches_contract: Limits of another contract" in page.read_text()
    assert len(set(pages)) == 2
    assert data_docs_page(tmp_path / "site", run_id(9)) is None

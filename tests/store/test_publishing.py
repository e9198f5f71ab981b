"""A published run is stored whole, once, and is the current one of its window where its coverage allows."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.store.examples import (
    CONTRACT,
    ORIGIN,
    WINDOW,
    breaks,
    contents,
    incident,
    one_break,
    partition,
    rows,
    run_id,
    statement,
)

from tieout.errors import StoreError
from tieout.model import CheckResult, CheckStatus, Guarantee, Severity, Verdict
from tieout.store import PublishedRun, RunOrigin, Store
from tieout.store.run_rows import COUNTS
from tieout.store.sql import queries


def test_a_published_run_is_read_back(store: Store) -> None:
    """The statement, the contract, where it came from and its findings are what was published."""
    published = store.publish(statement(), breaks(), CONTRACT, ORIGIN)

    run = store.run(run_id(1))
    assert published == PublishedRun(run_id(1), is_current=True)
    assert run is not None
    assert (run.statement, run.contract, run.origin) == (statement(), CONTRACT, ORIGIN)
    assert (run.pipeline, run.group, run.window, run.guarantee) == (
        "orders",
        "loader",
        WINDOW,
        Guarantee.EXACTLY_ONCE,
    )
    assert (run.verdict, run.final_verdict, run.checked_at) == (Verdict.BROKEN, None, None)
    assert (run.breaks_total, run.breaks_truncated, run.is_current) == (2, False, True)
    assert store.current_run("orders", WINDOW.start, WINDOW.end) == run


def test_findings_are_read_back(store: Store) -> None:
    """Incidents and breaks have every field that was published."""
    store.publish(statement(), breaks(), CONTRACT, ORIGIN)

    (found,) = store.incidents(run_id(1))
    first, second = store.breaks(run_id(1))
    assert (found.incident_id, found.class_name, found.locus, found.first_position, found.breaks) == (
        "incident-1",
        "LOST",
        "consumer",
        5,
        2,
    )
    assert found.severity is Severity.CRITICAL
    assert (first.break_id, first.flags, first.offset, first.positions) == (
        "break-0",
        ("COMMIT_AHEAD",),
        0,
        [["orders", 0, 0]],
    )
    assert second.evidence == {"produced": [{"message_id": "m-1", "outcome": "acked"}]}


def test_counts_are_stored_under_their_own_names(store: Store, store_url: str) -> None:
    """No count lands in another's column, and an unknown partition is null."""
    counts = {name: place for place, name in enumerate(COUNTS, start=1)}
    offsets = {"from": 0, "to": 9, "delivered": 9}

    store.publish(
        statement(
            partitions=[{**partition("orders", 3, **counts), "offsets": offsets}, partition(None, None)]
        ),
        breaks(),
        CONTRACT,
        ORIGIN,
    )

    known, unknown = sorted(rows(store_url, "statement_partition"), key=lambda row: str(row["topic"]))[::-1]
    assert {name: known[name] for name in COUNTS} == counts
    assert (known["topic"], known["partition"], known["offsets"]) == ("orders", 3, offsets)
    assert (unknown["topic"], unknown["partition"], unknown["lost"]) == (None, None, 0)
    assert {(row["kind"], row["name"], row["count"]) for row in rows(store_url, "statement_count")} == {
        ("class", "LOST", 2),
        ("class", "DELIVERED", 8),
        ("flag", "LATE", 1),
    }


def test_the_counts_stand_in_the_order_of_the_statement_that_writes_them() -> None:
    """Rows are written by place, so the names in the SQL follow the same order."""
    columns = queries()["write_partitions"].split("(")[1].split(")")[0].replace("\n", " ")

    assert [name.strip() for name in columns.split(",")][3:-1] == list(COUNTS)


def test_publishing_a_run_twice_leaves_the_same_rows(store: Store, store_url: str) -> None:
    """A second publication changes nothing, not even the time of the first or the checks made since."""
    store.publish(statement(), breaks(), CONTRACT, ORIGIN)
    check = CheckResult("no_loss", Severity.CRITICAL, CheckStatus.FAIL, "2", "0")
    store.record_checks(run_id(1), [check], Verdict.BROKEN, suite="s", suite_digest="d", gx_version="1")
    before = contents(store_url)

    again = store.publish(
        statement(generated_at="2026-11-20T13:00:00Z"), breaks(), CONTRACT, RunOrigin("d", "r", 2)
    )

    assert again == PublishedRun(run_id(1), is_current=True)
    assert contents(store_url) == before


def test_another_statement_under_the_same_id_replaces_the_rows(store: Store, store_url: str) -> None:
    """What was found and checked before is gone; nothing of the two is mixed."""
    store.publish(statement(), breaks(), CONTRACT, ORIGIN)
    check = CheckResult("no_loss", Severity.CRITICAL, CheckStatus.FAIL, "2", "0")
    store.record_checks(run_id(1), [check], Verdict.BROKEN, suite="s", suite_digest="d", gx_version="1")

    store.publish(
        statement(
            verdict="KEPT",
            partitions=[partition("orders", 0)],
            classes={"DELIVERED": 10},
            flags={},
            incidents=[],
            breaks_total=0,
        ),
        [],
        CONTRACT,
        ORIGIN,
    )

    run = store.run(run_id(1))
    assert run is not None
    assert (run.verdict, run.final_verdict, run.is_current, run.breaks_total) == (Verdict.KEPT, None, True, 0)
    assert (store.incidents(run_id(1)), store.breaks(run_id(1)), store.checks(run_id(1))) == ((), (), ())
    assert len(rows(store_url, "statement_partition")) == 1
    assert len(rows(store_url, "statement_count")) == 1


def test_a_new_run_of_a_window_becomes_the_current_one(store: Store) -> None:
    """The earlier run stays readable, and one run of the window is current."""
    store.publish(statement(1), breaks(), CONTRACT, ORIGIN)

    store.publish(statement(2, verdict="KEPT"), breaks(), CONTRACT, ORIGIN)

    current = store.current_run("orders", WINDOW.start, WINDOW.end)
    assert current is not None
    assert (current.run_id, current.verdict) == (run_id(2), Verdict.KEPT)
    assert [(run.run_id, run.is_current) for run in store.runs_of("orders")] == [
        (run_id(2), True),
        (run_id(1), False),
    ]


def _coverage(**changes: Any) -> dict[str, Any]:
    return {**statement()["coverage"], **changes}


@pytest.mark.parametrize(
    ("coverage", "lack"),
    [
        ({"produced": statement()["coverage"]["produced"]}, "delivered: was declared, is not any more"),
        (
            _coverage(delivered={"covers": False, "complete_until": "2026-11-20T11:20:00Z"}),
            "delivered: covered the window, does not any more",
        ),
        (
            _coverage(delivered={"covers": True, "complete_until": "2026-11-20T11:19:59Z"}),
            "delivered: was complete until 2026-11-20 11:20:00",
        ),
        (
            _coverage(delivered={"covers": True, "complete_until": None}),
            "delivered: was complete until 2026-11-20 11:20:00",
        ),
    ],
    ids=["ledger gone", "covers no more", "ends earlier", "end unknown"],
)
def test_a_run_with_less_coverage_is_stored_and_not_current(
    store: Store, coverage: dict[str, Any], lack: str
) -> None:
    """A re-run after the evidence was truncated cannot replace what was known before."""
    store.publish(statement(1), breaks(), CONTRACT, ORIGIN)

    published = store.publish(statement(2, coverage=coverage, verdict="KEPT"), [], CONTRACT, ORIGIN)

    current = store.current_run("orders", WINDOW.start, WINDOW.end)
    assert published.reason is not None
    assert lack in published.reason
    assert (published.is_current, current and current.run_id) == (False, run_id(1))
    assert store.run(run_id(2)) is not None


@pytest.mark.parametrize(
    "coverage",
    [
        _coverage(),
        _coverage(delivered={"covers": True, "complete_until": "2026-11-20T12:20:00+01:00"}),
        _coverage(log={"covers": False, "complete_until": None}),
    ],
    ids=["same", "same in another zone", "one ledger more"],
)
def test_a_run_with_as_much_coverage_becomes_current(store: Store, coverage: dict[str, Any]) -> None:
    """Equal coverage contains its predecessor's, whatever zone its times are written in."""
    store.publish(statement(1), breaks(), CONTRACT, ORIGIN)

    assert store.publish(statement(2, coverage=coverage), breaks(), CONTRACT, ORIGIN).is_current


def test_a_predecessor_that_covered_nothing_gives_way(store: Store) -> None:
    """After a run without evidence, any later run counts."""
    nothing = {"produced": {"covers": False, "complete_until": None}}
    store.publish(statement(1, coverage=nothing), [], CONTRACT, ORIGIN)

    assert store.publish(statement(2), breaks(), CONTRACT, ORIGIN).is_current


def test_a_run_generated_before_the_current_one_does_not_replace_it(store: Store) -> None:
    """A worker that was given up for dead and publishes late changes nothing."""
    store.publish(statement(2), breaks(), CONTRACT, ORIGIN)

    published = store.publish(statement(1), breaks(), CONTRACT, ORIGIN)

    assert (published.is_current, published.reason and run_id(2) in published.reason) == (False, True)
    assert store.publish(statement(1), breaks(), CONTRACT, ORIGIN).is_current is False


@pytest.mark.parametrize(
    "other",
    [
        {"pipeline": "payments"},
        {"group": "another"},
        {"window": {"start": "2026-11-20T11:00:00Z", "end": "2026-11-20T12:00:00Z"}},
    ],
    ids=["pipeline", "group", "window"],
)
def test_runs_of_other_windows_stay_current(store: Store, other: dict[str, Any]) -> None:
    """Pipeline, group and window together are what one current run is of."""
    store.publish(statement(1), breaks(), CONTRACT, ORIGIN)

    store.publish(statement(2, **other), breaks(), CONTRACT, ORIGIN)

    first, second = store.run(run_id(1)), store.run(run_id(2))
    assert first is not None
    assert second is not None
    assert (first.is_current, second.is_current) == (True, True)


def test_twenty_breaks_of_an_incident_are_stored(store: Store) -> None:
    """A large incident is a count and a sample, and the run says that it is one."""
    many = [*breaks(50), one_break(50, incident_id="incident-2", severity="warning")]
    incidents = [incident("incident-1", 50), incident("incident-2", 1)]

    store.publish(statement(incidents=incidents, breaks_total=51), many, CONTRACT, ORIGIN)

    run, stored = store.run(run_id(1)), store.breaks(run_id(1), limit=1000)
    assert run is not None
    assert (run.breaks_total, run.breaks_truncated, len(stored)) == (51, True, 21)
    assert [(item.breaks, item.severity) for item in store.incidents(run_id(1))] == [
        (50, Severity.CRITICAL),
        (1, Severity.WARNING),
    ]


def test_breaks_without_an_incident_are_bounded_by_class(store: Store) -> None:
    """Loose breaks of one class count as one incident."""
    loose = (one_break(number, incident_id=None) for number in range(30))

    store.publish(statement(incidents=[], breaks_total=30), loose, CONTRACT, ORIGIN)

    assert len(store.breaks(run_id(1), limit=1000)) == 20


def test_a_run_with_fewer_breaks_than_it_counts_is_truncated(store: Store) -> None:
    """`breaks.jsonl` ends after 100,000; the store then does not claim to have them all."""
    store.publish(statement(breaks_total=5), breaks(2), CONTRACT, ORIGIN)

    run = store.run(run_id(1))
    assert run is not None
    assert run.breaks_truncated


def test_hostile_text_is_stored_visibly(store: Store) -> None:
    """Zero bytes, lone surrogates, quotes and percent signs in ids and evidence are no obstacle."""
    hostile = "a\x00b\ud800c'; DROP TABLE tieout.run; --%(x)s \\ \u202e<b>"
    strange = one_break(
        1, break_id="b\x00", message_id=hostile, evidence={"log\x00": [{"k\x00": hostile, "n": float("nan")}]}
    )

    store.publish(statement(reasons=[hostile], group=hostile), [strange], {"description": hostile}, ORIGIN)

    visible = hostile.replace("\x00", "\\u0000").replace("\ud800", "\\ud800")
    run, (stored,) = store.run(run_id(1)), store.breaks(run_id(1))
    assert run is not None
    assert (run.reasons, run.group, run.contract) == ((visible,), visible, {"description": visible})
    assert (stored.break_id, stored.message_id) == ("b\\u0000", visible)
    assert stored.evidence == {"log\\u0000": [{"k\\u0000": visible, "n": "nan"}]}


def test_very_long_ids_are_cut_and_stay_different(store: Store) -> None:
    """Ids of a megabyte fit neither an index nor a page; their digests keep two of them apart."""
    huge = ["😀" * 1_000_000 + end for end in ("1", "2")]
    long_breaks = [
        one_break(0, break_id=text, message_id=text, incident_id=text, evidence={"log": [{"key": text}]})
        for text in huge
    ]

    store.publish(statement(incidents=[incident(huge[0], 2)]), long_breaks, CONTRACT, ORIGIN)

    stored = store.breaks(run_id(1))
    assert len({item.break_id for item in stored}) == len({item.message_id for item in stored}) == 2
    assert all(len(item.break_id) == 500 and "1000001 characters" in item.break_id for item in stored)
    assert len(json.dumps(stored[0].evidence, ensure_ascii=False)) < 3000
    assert store.incidents(run_id(1))[0].incident_id in {item.incident_id for item in stored}


@pytest.mark.parametrize(
    ("changed", "found_breaks", "complaint"),
    [
        ({"run_id": "7"}, [], "run_id: expected a UUID, found '7'"),
        ({"generated_at": "yesterday"}, [], "expected an ISO 8601 time, found 'yesterday'"),
        ({"generated_at": "2026-11-20T12:00:00"}, [], "expected a time with a time zone"),
        ({"verdict": "FINE"}, [], "run_verdict_check"),
        ({"group": "g" * 2000}, [], "run_consumer_group_check"),
        ({"partitions": [{"topic": "t", "partition": 0}]}, [], "found no attempts, acked_attempts"),
        ({"partitions": [partition("t", 0, lost=-1)]}, [], "statement_partition_counts_check"),
        ({"partitions": [partition("t", 0), partition("t", 0)]}, [], "statement_partition_key"),
        ({}, [{"break_id": "b", "severity": "info"}], "break: expected the keys .*, found no class"),
        ({}, [one_break(1, severity="loud")], "break break-1: expected a severity of .*, found loud"),
        ({}, [one_break(1), one_break(1)], "break_pkey"),
        ({}, [one_break(1, offset=2**70)], "out of range"),
    ],
)
def test_a_defective_run_is_refused_as_a_whole(
    store: Store, store_url: str, changed: dict[str, Any], found_breaks: list[dict[str, Any]], complaint: str
) -> None:
    """What the statement's format does not allow leaves the store as it was, and says what was wrong."""
    with pytest.raises(StoreError, match=complaint):
        store.publish(statement(**changed), found_breaks, CONTRACT, ORIGIN)

    assert not any(contents(store_url).values())


def test_a_statement_without_a_key_is_refused(store: Store) -> None:
    """The missing key is named."""
    incomplete = statement()
    del incomplete["coverage"]

    with pytest.raises(StoreError, match=r"statement: .*found no coverage"):
        store.publish(incomplete, [], CONTRACT, ORIGIN)


def test_a_failure_of_the_breaks_leaves_the_store_as_it_was(store: Store, store_url: str) -> None:
    """What reads the breaks may fail in the middle: its own error arrives, and nothing is stored."""
    store.publish(statement(1), breaks(), CONTRACT, ORIGIN)
    before = contents(store_url)

    def torn() -> Iterator[dict[str, Any]]:
        yield from (one_break(number, incident_id=f"i{number}") for number in range(1000))
        raise OSError("breaks.jsonl: short read")

    with pytest.raises(OSError, match="short read"):
        store.publish(statement(2), torn(), CONTRACT, ORIGIN)

    assert contents(store_url) == before


_LARGE = """
import resource, sys
from tests.store.examples import CONTRACT, ORIGIN, one_break, statement
from tieout.store import Store

def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

breaks = (
    one_break(n, incident_id=f"i{n // 20}", evidence={"log": [{"payload": str(n) * 200}]})
    for n in range(100_000)
)
store = Store(sys.argv[1])
store.publish(statement(1), [], CONTRACT, ORIGIN)
before = megabytes()
store.publish(statement(2, incidents=[], breaks_total=100_000), breaks, CONTRACT, ORIGIN)
print(megabytes() - before)
"""


def test_a_hundred_thousand_breaks_need_little_memory(store: Store, store_url: str) -> None:
    """All of them are stored, 5,000 incidents of 20, while only a page of them is in memory."""
    finished = subprocess.run(
        [sys.executable, "-c", _LARGE, store_url], capture_output=True, text=True, check=False, timeout=240
    )

    assert finished.returncode == 0, finished.stderr
    assert float(finished.stdout) < 30
    assert len(store.breaks(run_id(2), limit=200_000)) == 100_000

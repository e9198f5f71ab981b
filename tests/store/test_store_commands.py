"""The commands about open breaks, against a real store: what they print, refuse and change."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.store.checked import contract_of, statement_of
from tests.store.examples import CONTRACT, ORIGIN, breaks, incident, one_break, query, run_id, statement

from tieout.cli.main import main
from tieout.store import Store


@pytest.fixture
def published(store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store with two open breaks of one incident, and the environment that leads to it."""
    monkeypatch.setenv("TIEOUT_DATABASE_URL", store_url)
    store.publish(statement(1), breaks(), CONTRACT, ORIGIN)
    return store


def run_command(*words: str) -> tuple[int, str, str]:
    """Return exit code, output and complaint of one command."""
    out, err = io.StringIO(), io.StringIO()
    code = main(words, out=out, err=err)
    return code, out.getvalue(), err.getvalue()


def json_output(*words: str) -> Any:
    """Return what a command prints as JSON."""
    code, out, err = run_command(*words, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_status_says_how_a_pipeline_stands(published: Store) -> None:
    """Latest verdict, open breaks, silences; as text and as JSON."""
    run_command("silence", "orders", "--until", "2h", "--reason", "maintenance", "--who", "ann")

    code, out, _ = run_command("status")
    (as_json,) = json_output("status", "orders")["pipelines"]

    assert code == 0
    assert out.splitlines()[0] == (
        "orders: BROKEN, not checked yet for 2026-11-20T10:00:00Z to 2026-11-20T11:00:00Z; "
        "2 open breaks in 1 incidents, the oldest of 2026-11-20T10:00:00Z"
    )
    assert out.splitlines()[1].startswith("silenced: orders until ")
    assert out.splitlines()[1].endswith(" by ann: maintenance")
    assert (as_json["open_breaks"], as_json["verdict"], as_json["oldest_open"]) == (
        2,
        "BROKEN",
        "2026-11-20T10:00:00Z",
    )


def test_breaks_are_listed_page_by_page(published: Store) -> None:
    """A full page names where the next begins."""
    code, out, _ = run_command("breaks", "orders", "--limit", "1")
    second = json_output("breaks", "orders", "--limit", "1", "--after", "break-0")
    incidents = json_output("breaks", "orders", "--incidents")
    behind_the_last = run_command("breaks", "orders", "--after", "break-1")

    assert code == 0
    assert behind_the_last[:2] == (0, "nothing more is open\n")
    assert out.splitlines() == [
        "break-0  LOST message m-0 orders-0 offset 0 (consumer, commit before process); critical, open, 0 windows old, "
        "window 2026-11-20T10:00:00Z to 2026-11-20T11:00:00Z",
        "there may be more: --after break-0",
    ]
    assert [each["id"] for each in second["open"]] == ["break-1"]
    assert (incidents["open"][0]["id"], incidents["open"][0]["breaks"], incidents["after"]) == (
        "incident-1",
        2,
        None,
    )


def test_accepted_breaks_are_not_open_and_the_verdict_stays(published: Store, store_url: str) -> None:
    """Accept, look, take back: the history shows who and why."""
    accepted = json_output(
        "accept", "orders", "--incident", "incident-1", "--until", "7d", "--reason", "INC-7", "--who", "ann"
    )
    open_then = run_command("breaks", "orders")[1]
    reopened = run_command("reopen", "orders", "--break", "break-0", "--reason", "no", "--who", "bob")
    run_command("annotate", "orders", "--break", "break-0", "--reason", "look\x1b[31m", "--who", "eve")
    history = run_command("breaks", "orders", "--history", "break-0")[1].splitlines()

    assert accepted["accepted"] == 3
    assert open_then == "nothing is open\n"
    assert reopened[:2] == (0, "orders: reopened: 1 breaks and incidents\n")
    assert history[1].endswith(f"open as LOST, run {run_id(1)}")
    assert any(" by ann: INC-7" in line for line in history)
    assert history[-1].endswith("annotate by eve: look\\u001b[31m")
    assert query(store_url, "SELECT verdict FROM tieout.run") == [{"verdict": "BROKEN"}]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["status", "order"], "pipeline order: no run of it is in the store; is the name right?"),
        (["breaks", "order"], "pipeline order: no run of it is in the store"),
        (["breaks", "orders", "--history", "nobody"], "the break nobody is not followed"),
        (
            ["accept", "orders", "--break", "nobody", "--until", "7d", "--reason", "r"],
            "no break nobody is in the store; `tieout breaks orders` lists what is open",
        ),
        (
            ["accept", "orders", "--break", "break-1", "--until", "2020-01-01T00:00:00Z", "--reason", "r"],
            "until: expected a time in the future",
        ),
        (["breaks", "orders", "--after", "nobody"], "--after nobody: expected the id of a break of orders"),
        (
            ["breaks", "orders", "--incidents", "--after", "break-0"],
            "expected the id of an incident of orders",
        ),
        (["reopen", "orders", "--incident", "incident-1", "--reason", "r"], "expected something accepted"),
        (["annotate", "orders", "--incident", "incident-1", "--reason", " "], "reason: expected some words"),
    ],
)
def test_a_mistake_is_explained_and_changes_nothing(
    published: Store, words: list[str], complaint: str
) -> None:
    """Exit 2, one line, no trace."""
    code, out, err = run_command(*words)

    assert (code, out) == (2, "")
    assert complaint in err
    assert len(err.splitlines()) == 1
    assert len(published.open_breaks("orders")) == 2


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ["accept", "orders", "--reason", "r", "--until", "7d"],
            "one of the arguments --incident --break is required",
        ),
        (["accept", "orders", "--break", "b", "--reason", "r"], "--until"),
        (
            ["accept", "orders", "--break", "b", "--reason", "r", "--until", "soon"],
            "or a duration from now such as 7d",
        ),
        (["silence", "orders", "--reason", "r"], "one of the arguments --until --end is required"),
        (["breaks", "orders", "--limit", "0"], "expected a number from 1 to 10000"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the store is asked."""
    with pytest.raises(SystemExit) as caught:
        run_command(*words)

    assert caught.value.code == 2
    assert complaint in capsys.readouterr().err


def test_without_a_store_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the one thing to set."""
    monkeypatch.delenv("TIEOUT_DATABASE_URL", raising=False)

    code, _, err = run_command("status")

    assert code == 2
    assert "TIEOUT_DATABASE_URL is not set" in err


def test_the_commands_of_the_how_to_page_exist() -> None:
    """Every command on the page parses."""
    page = (Path(__file__).resolve().parents[2] / "docs/how-to/work-with-open-breaks.md").read_text()

    assert all(
        f"tieout {name}" in page for name in ("status", "breaks", "accept", "reopen", "annotate", "silence")
    )


def test_one_break_more_is_found_by_a_later_page(published: Store) -> None:
    """What opens while somebody reads on is not lost between pages."""
    published.publish(
        statement(2, incidents=[incident("incident-1", 3)], breaks_total=3),
        [*breaks(), one_break(2)],
        CONTRACT,
        ORIGIN,
    )

    assert [each["id"] for each in json_output("breaks", "orders", "--after", "break-0")["open"]] == [
        "break-1",
        "break-2",
    ]


def test_a_stored_run_is_checked_without_airflow(
    store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line for each rule, the exit code of the worst, and nothing is stored."""
    monkeypatch.setenv("TIEOUT_DATABASE_URL", store_url)
    contract = contract_of("exactly_once")
    found = statement_of(contract)
    store.publish(found, (), json.loads(contract.to_json()), ORIGIN)

    code, out, _ = run_command("check-run", found["run_id"])
    report = json_output("check-run", found["run_id"])

    assert code == 0
    assert any(line.startswith("pass  critical lost:") for line in out.splitlines())
    assert report["suite"] == "statement+exactly_once"
    assert store.checks(found["run_id"]) == ()
    code, _, err = run_command("check-run", run_id(99))
    assert (code, "no run of that id" in err) == (2, True)

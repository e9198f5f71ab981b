"""The command line as scripts and people meet it: words, exit codes, and what it never does."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.store.examples import incident

from tieout.cli.engine import Bundled, Engine, Order, Progress, RenderHtml
from tieout.cli.java import JavaError
from tieout.cli.main import main
from tieout.cli.output import checked_output
from tieout.contracts import Contract, load_contract
from tieout.contracts.schema import json_schema
from tieout.engine.bundle.packing import BundleRequest
from tieout.errors import SourceError, UsageError
from tieout.model import Ledger, OffsetRange, Window
from tieout.reporting.schema import statement_schema, trace_schema
from tieout.reporting.trace import LedgerRows, RequestedBy, Subject, TraceRequest, trace_document

CONTRACT = """\
version: 1
pipeline: orders
guarantee: at_least_once
group: loader
ledgers:
  produced: {source: {kind: files, format: jsonl, path: p.jsonl}}
  delivered: {source: {kind: files, format: jsonl, path: d.jsonl}}
"""
BY_OFFSETS = (
    CONTRACT
    + """\
  log: {source: {kind: files, format: jsonl, path: l.jsonl}}
windows: offsets
"""
)
WINDOW = ("--from", "2026-11-20T10:00:00Z", "--to", "2026-11-20T12:00:00+01:00")


@dataclass
class FakeEngine:
    """An engine that returns what it was given, or raises it, and remembers what it was asked."""

    verdict: str = "KEPT"
    failure: BaseException | None = None
    incidents: tuple[dict[str, Any], ...] = ()
    subjects: tuple[Subject, ...] = ()
    requests: list[tuple[Order, object]] = field(default_factory=list)
    followed: list[tuple[Window | None, TraceRequest]] = field(default_factory=list)
    hops: list[str] = field(default_factory=list)

    def reconcile(
        self, order: Order, output: Path, render_html: RenderHtml, progress: Progress
    ) -> Mapping[str, Any]:
        """Return a statement with the verdict, rendered as the engine would."""
        self.requests.append((order, output))
        if self.failure:
            raise self.failure
        found = statement(order, self.verdict) | {"incidents": list(self.incidents)}
        output.mkdir()
        (output / "statement.html").write_text(render_html(found, []))
        progress("reading the ledgers")
        return found

    def bundle(self, order: Order, request: BundleRequest, progress: Progress) -> Bundled:
        """Return the statement with a digest, and write nothing."""
        self.requests.append((order, request))
        progress("reading the ledgers")
        return Bundled(statement(order, self.verdict), "ab" * 32, 4711)

    def follow(
        self, contract: Contract, window: Window | None, request: TraceRequest, progress: Progress
    ) -> Mapping[str, Any]:
        """Return the trace of the subjects."""
        self.followed.append((window, request))
        self.hops.append(contract.pipeline)
        progress("looking for the message")
        total = len(self.subjects)
        return trace_document(contract, window, request, self.subjects, total=total, coverage=None)


def statement(order: Order, verdict: str) -> dict[str, Any]:
    """Return an empty window's statement."""
    return {
        "schema_version": 1,
        "pipeline": order.contract.pipeline,
        "group": order.contract.group,
        "contract_digest": order.contract.digest,
        "window": {"start": order.window.start.isoformat(), "end": order.window.end.isoformat()},
        "run_id": order.run_id,
        "generated_at": order.now.isoformat(),
        "guarantee": order.contract.guarantee.value,
        "identity": order.contract.identity.value,
        "verdict": verdict,
        "breaks_total": 0,
        "breaks_truncated": False,
        **{key: [] for key in ("reasons", "not_judged", "partitions", "incidents", "checks")},
        **{key: {} for key in ("coverage", "classes", "flags", "budgets", "latency")},
    }


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


def run(*arguments: str | Path, engine: Engine | None = None) -> Ended:
    """Run a command with an engine, a fake that keeps every guarantee where none is given."""
    out, err = io.StringIO(), io.StringIO()
    code = main([str(argument) for argument in arguments], engine=engine or FakeEngine(), out=out, err=err)
    return Ended(code, out.getvalue(), err.getvalue())


@pytest.fixture
def contract(tmp_path: Path) -> Path:
    """A valid contract file."""
    file = tmp_path / "orders.yml"
    file.write_text(CONTRACT)
    return file


@pytest.mark.parametrize(("verdict", "code"), [("KEPT", 0), ("BROKEN", 1), ("PENDING", 3), ("UNKNOWN", 3)])
def test_the_exit_code_is_the_verdict(contract: Path, tmp_path: Path, verdict: str, code: int) -> None:
    """What could not be told is never 0."""
    ended = run("reconcile", contract, *WINDOW, "--output", tmp_path / "out", engine=FakeEngine(verdict))

    assert ended.code == code
    assert ended.out.startswith(f"{verdict}  orders\n")


def test_a_bundle_is_asked_for_and_its_digest_printed(contract: Path, tmp_path: Path) -> None:
    """Whatever the verdict, a bundle that was written is exit code 0."""
    engine, file = FakeEngine("BROKEN"), tmp_path / "orders.zip"

    ended = run(
        "bundle", contract, *WINDOW, "--output", file, "--max-mb", "7", "--without-contents", engine=engine
    )

    assert ended.code == 0
    assert ended.out.splitlines()[-1] == f"digest: {'ab' * 32}"
    assert [request for _, request in engine.requests] == [BundleRequest(file, 7, has_contents=False)]


def test_reconcile_makes_a_bundle_of_its_run(contract: Path, tmp_path: Path) -> None:
    """It is part of the order, so that both are of one run; without the option there is none."""
    engine, file = FakeEngine(), tmp_path / "orders.zip"

    run("reconcile", contract, *WINDOW, "--output", tmp_path / "a", "--bundle", file, engine=engine)
    run("reconcile", contract, *WINDOW, "--output", tmp_path / "b", engine=engine)

    assert [order.bundle for order, _ in engine.requests] == [
        BundleRequest(file, 1024, has_contents=True),
        None,
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("orders", "expected the name of a file that ends in .zip"),
        ("no/orders.zip", "is not a folder that can be written"),
    ],
)
def test_a_bundle_that_cannot_be_written_is_refused_before_anything_is_read(
    contract: Path, tmp_path: Path, name: str, expected: str
) -> None:
    """Judging takes longer than finding that out."""
    engine = FakeEngine()

    ended = run("bundle", contract, *WINDOW, "--output", tmp_path / name, engine=engine)

    assert (ended.code, engine.requests) == (2, [])
    assert expected in ended.err


def test_what_was_found_is_held_against_the_declared_settings(contract: Path, tmp_path: Path) -> None:
    """A loss by a commit before the output, where the contract says that commits come after it."""
    contract.write_text(CONTRACT + "settings: {consumer: {commits: after processing}}\n")
    lost = incident("i", 2) | {"cause": "commit before process"}

    ended = run(
        "reconcile", contract, *WINDOW, "--output", tmp_path / "out", engine=FakeEngine(incidents=(lost,))
    )

    assert "after processing: declared: " in ended.err
    assert "Found: 2 LOST in 1 incidents, the first in orders-0" in ended.err


def test_standard_output_holds_the_statement_alone(contract: Path, tmp_path: Path) -> None:
    """Progress goes to standard error; with --json the output is the statement, for other programs."""
    engine = FakeEngine()

    ended = run("reconcile", contract, *WINDOW, "--output", tmp_path / "out", "--json", engine=engine)

    order, output = engine.requests[0]
    assert json.loads(ended.out) == statement(order, "KEPT")
    assert output == tmp_path / "out"
    assert ended.err.splitlines() == [
        "tieout: reading the ledgers",
        f"tieout: written: {tmp_path / 'out' / 'statement.html'}",
    ]
    assert order.window.end == datetime(2026, 11, 20, 11, tzinfo=UTC)


def test_a_statement_is_printed_for_a_ticket(contract: Path, tmp_path: Path) -> None:
    """As Markdown; --json stays the short word for JSON, and is not joined with another format."""
    arguments = ("reconcile", contract, *WINDOW, "--output", tmp_path / "out")

    assert run(*arguments, "--format", "markdown").out.startswith("# KEPT: `orders`\n")
    with pytest.raises(SystemExit):
        run(*arguments, "--format", "markdown", "--json")


@pytest.mark.parametrize(
    ("failure", "line"),
    [
        (SourceError("ledgers.produced: no column sent_ms"), "tieout: ledgers.produced: no column sent_ms"),
        (JavaError(), "tieout: Java is missing or too old for Spark."),
        (PermissionError(13, "Permission denied", "/out"), "tieout: [Errno 13] Permission denied: '/out'"),
        (KeyboardInterrupt(), "tieout: interrupted"),
        (
            RuntimeError("first\x1b[2J\nsecond"),
            "tieout: unexpected failure: RuntimeError: first\\u001b[2J; --debug shows where",
        ),
        (
            ZeroDivisionError(),
            "tieout: unexpected failure: ZeroDivisionError: no further words; --debug shows where",
        ),
    ],
)
def test_every_failure_is_one_line_and_exit_code_2(
    contract: Path, tmp_path: Path, failure: BaseException, line: str
) -> None:
    """A failure is never a verdict, and its stack is shown on demand only."""
    arguments = ("reconcile", contract, *WINDOW, "--output", tmp_path / "out")

    ended = run(*arguments, engine=FakeEngine(failure=failure))
    debugged = run(*arguments, "--debug", engine=FakeEngine(failure=failure))

    assert (ended.code, ended.out, ended.err) == (2, "", line + "\n")
    assert debugged.code == 2
    assert "Traceback" in debugged.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--from", "2026-11-20T10:00:00"), "argument --from: expected a time with its zone"),
        (
            ("--from", "2026-11-20T10:00:00Z", "--to", "9999-12-31T23:59:59Z"),
            "argument --to: expected a time between 1970 and 2100, found '9999-12-31T23:59:59Z'",
        ),
        (("--from", "0001-01-01T00:00:00Z"), "argument --from: expected a time between 1970 and 2100"),
        (
            ("--from", "yesterday"),
            "argument --from: expected a time such as 2026-11-20T10:00:00Z, found 'yesterday'",
        ),
        ((), "the following arguments are required: --from, --to, --output"),
    ],
)
def test_arguments_that_cannot_be_read_are_usage_errors(
    contract: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    """A time without a zone is refused, not guessed."""
    with pytest.raises(SystemExit) as ended:
        main(["reconcile", str(contract), *arguments])

    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_nothing_is_judged_where_something_is_wrong(contract: Path, tmp_path: Path) -> None:
    """A wrong contract, window, output folder or an unsupported contract is told before the engine starts."""
    engine = FakeEngine()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("ten years of work")
    (tmp_path / "bad.yml").write_text(CONTRACT.replace("group", "gruop"))
    (tmp_path / "offsets.yml").write_text(BY_OFFSETS)
    output = ("--output", tmp_path / "out")
    by_offsets = (tmp_path / "offsets.yml", *WINDOW)
    twice = ("--offsets", "orders/0/0-10", "--offsets", "orders/0/20-30")
    backwards = ("--from", WINDOW[1], "--to", WINDOW[1])
    wrong: dict[str, tuple[str | Path, ...]] = {
        "missing.yml: no such file": (tmp_path / "missing.yml", *WINDOW, *output),
        "bad.yml:4: gruop: unknown field; did you mean group?": (tmp_path / "bad.yml", *WINDOW, *output),
        "windows: offsets: expected the ranges to judge": (*by_offsets, *output),
        "expected no ranges of offsets, found orders/0/0-10": (contract, *WINDOW, *twice[:2], *output),
        "expected one range of a partition, found orders/0/0-10 and orders/0/20-30": (
            *by_offsets,
            *twice,
            *output,
        ),
        "--to must be after --from": (contract, *backwards, *output),
        "holds 'thesis.txt', which is no part of a statement": (
            contract,
            *WINDOW,
            "--output",
            tmp_path / "full",
        ),
    }

    for words, arguments in wrong.items():
        ended = run("reconcile", *arguments, engine=engine)

        assert (ended.code, ended.out) == (2, "")
        assert words in ended.err
    assert engine.requests == []
    assert (tmp_path / "full" / "thesis.txt").exists()


def test_ranges_of_offsets_are_the_window(tmp_path: Path) -> None:
    """Where the contract cuts by offsets the engine is asked for the ranges that are named, in their order."""
    engine = FakeEngine()
    (tmp_path / "offsets.yml").write_text(BY_OFFSETS)
    named = ("--offsets", "eu/orders/1/5-6", "--offsets", "a-b/0/100-200")

    ended = run(
        "reconcile", tmp_path / "offsets.yml", *WINDOW, *named, "--output", tmp_path / "out", engine=engine
    )

    assert ended.code == 0
    requested = engine.requests[0][0].window.offsets
    assert requested == (OffsetRange("a-b", 0, 100, 200), OffsetRange("eu/orders", 1, 5, 6))


@pytest.mark.parametrize(
    "text", ["orders", "orders/0", "orders/0/5", "orders/0/5-", "orders/0/7-7", "orders/0/9-3"]
)
def test_a_range_without_offsets_is_refused(
    text: str, contract: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is no range, or an empty one, is told with what was expected."""
    with pytest.raises(SystemExit) as ended:
        main(["reconcile", str(contract), *WINDOW, "--offsets", text, "--output", "out"])

    assert ended.value.code == 2
    assert "--offsets: " in capsys.readouterr().err


def test_an_output_folder_may_be_new_empty_or_an_earlier_statement(tmp_path: Path) -> None:
    """Whatever else is there would be lost with it, so it is refused."""
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    (earlier / "statement.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(earlier)

    for good in (tmp_path / "new" / "deep", tmp_path / "empty", earlier):
        assert checked_output(good) == good
    for bad in (tmp_path / "file", tmp_path / "link", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match="--output"):
            checked_output(bad)


@pytest.mark.parametrize(
    "words",
    [
        ["check", ""],
        ["reconcile", "orders.yml", *WINDOW, "--output", ""],
        ["watch", "", "--output", "out"],
        ["verify", ""],
        ["airflow", "init", ""],
    ],
    ids=lambda words: words[0],
)
def test_an_empty_path_is_not_the_working_directory(
    words: list[str], contract: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A variable that is not set, as in `tieout check "$CHANGED"`, must not check or write something else."""
    monkeypatch.chdir(contract.parent)

    with pytest.raises(SystemExit) as ended:
        main(words)

    assert ended.value.code == 2
    assert "expected a path, found an empty text" in capsys.readouterr().err
    assert list(contract.parent.iterdir()) == [contract]


def test_check_tells_everything_that_is_wrong(contract: Path, tmp_path: Path) -> None:
    """Good contracts are listed, all problems of the bad ones follow, and one bad one is exit code 2."""
    (tmp_path / "bad.yml").write_text(CONTRACT.replace("group: loader", "gruop: loader\ngrace: 5"))
    by_offsets = CONTRACT.replace("orders", "other") + "windows: offsets\nschedule: '@hourly'\n"
    (tmp_path / "offsets.yml").write_text(by_offsets)

    alone, together = run("check", contract), run("check", tmp_path)

    assert alone.code == 0
    assert alone.out.startswith(
        "orders: valid; at_least_once for group loader\n  ledgers: produced, delivered\n"
    )
    assert together.code == 2
    assert together.out == alone.out
    for words in (
        "group: this field is required",
        "bad.yml:4: gruop",
        "bad.yml:5: grace",
        "offsets.yml:8: windows: offsets needs the ledger log",
        "offsets.yml:9: schedule: has no effect with windows: offsets",
    ):
        assert words in together.err


def test_init_says_which_name_is_none(tmp_path: Path) -> None:
    """By the argument, not by a file that nobody wrote."""
    (tmp_path / "a.jsonl").write_text('{"id": "a"}\n')
    words = (
        "--guarantee",
        "at_least_once",
        "--produced",
        tmp_path / "a.jsonl",
        "--delivered",
        tmp_path / "a.jsonl",
    )

    reported = run("init", "Orders-2", *words)

    assert reported.code == 2
    assert reported.err.startswith("tieout: PIPELINE Orders-2: pipeline: expected text that matches")


def test_init_writes_a_contract_that_check_accepts(tmp_path: Path) -> None:
    """With paths as the contract's folder sees them; what is open is told, and nothing is overwritten."""
    (tmp_path / "sent.jsonl").write_text('{"id": "a", "sent_ms": 1763632800000}\n')
    (tmp_path / "out.csv").write_text("id,loaded_at\na,2026-11-20T10:00:00Z\n")
    words = ("init", "orders", "--guarantee", "at_least_once", "--produced", tmp_path / "sent.jsonl")
    file = tmp_path / "orders.yml"

    written = run(*words, "--delivered", tmp_path / "out.csv", "--output", file)
    again = run(*words, "--delivered", tmp_path / "out.csv", "--output", file)
    printed = run(*words, "--delivered", tmp_path / "out.csv")
    as_json = run(*words, "--delivered", tmp_path / "out.csv", "--json")
    lacking = run(*words)

    assert (written.code, again.code, printed.code, lacking.code) == (0, 2, 0, 2)
    assert json.loads(as_json.out)["contract"] == printed.out
    assert [f"left open: {one}" in printed.err for one in json.loads(as_json.out)["open_questions"]]
    assert f"tieout: written: {file}\ntieout: left open: produced: coverage" in written.err
    assert "it exists, and is not overwritten" in again.err
    assert "expected --produced and one of --delivered and --read" in lacking.err
    assert printed.out.startswith("# Written by `tieout init`")
    assert run("check", file).code == 0
    assert load_contract(file).ledgers[Ledger.PRODUCED].columns["attempted_at"] == "timestamp_millis(sent_ms)"


def test_check_tells_what_the_settings_let_happen(contract: Path, tmp_path: Path) -> None:
    """Findings do not make a contract invalid; without settings nothing is said of them."""
    file = tmp_path / "a.yml"
    file.write_text(
        CONTRACT + "settings: {producer: {client: java-4.0, acks: '1'}, broker: {client: kafka-4.0}}\n"
    )

    silent, reported = run("check", contract), run("check", file)

    assert "  settings: none declared, so nothing is said of them\n" in silent.out
    assert reported.code == 0
    assert (
        "  settings: 1 critical, 1 warning\n  critical  producer.acks = 1\n    default:  all from 3.0\n"
        in reported.out
    )
    assert "    leads to: LOST, LOG_TRUNCATION (cause: leader failover or unclean election)\n" in reported.out


def test_check_prints_findings_as_json(tmp_path: Path) -> None:
    """Programs read contracts, findings and errors from standard output; people the errors from standard error."""
    (tmp_path / "a.yml").write_text(
        CONTRACT + "settings: {consumer: {commits: before processing, enable.auto.commit: false}}\n"
    )
    (tmp_path / "b.yml").write_text(CONTRACT.replace("group", "gruop"))

    ended = run("check", tmp_path, "--json")

    printed = json.loads(ended.out)
    assert ended.code == 2
    assert printed["contracts"][0]["pipeline"] == "orders"
    assert printed["contracts"][0]["findings"][0]["rule"] == "consumer_commits_before"
    assert [error["file"] for error in printed["errors"]] == [str(tmp_path / "b.yml")]
    assert "gruop: unknown field" in printed["errors"][0]["reason"]
    assert "b.yml" in ended.err


def test_check_fails_where_a_settings_file_cannot_be_read(tmp_path: Path) -> None:
    """A path that leads nowhere is a mistake in the contract, not a clean bill."""
    file = tmp_path / "a.yml"
    file.write_text(CONTRACT + "settings: {producer: {file: conf/none.properties}}\n")

    ended = run("check", file)

    assert ended.code == 2
    assert "conf/none.properties" in ended.out
    assert "cannot be read: No such file or directory" in ended.out


def test_an_empty_folder_is_no_success(tmp_path: Path) -> None:
    """Where no contract was checked, nothing was found to be right."""
    empty = run("check", tmp_path)

    assert empty.code == 2
    assert "no contract (*.yml, *.yaml) in this folder" in empty.err


def test_trace_tells_the_way_of_a_message(contract: Path) -> None:
    """As text for people, as JSON for programs; a window is not needed."""
    sent = LedgerRows(({"message_id": "m1", "outcome": "acked", "attempted_at": "2026-11-20T10:00:00Z"},), 1)
    engine = FakeEngine(subjects=(Subject("m1", (), None, (), {Ledger.PRODUCED: sent}),))

    reported = run("trace", contract, "m1", *WINDOW, engine=engine)
    document = run("trace", contract, "m1", "--json", engine=engine)

    assert (reported.code, document.code) == (0, 0)
    assert reported.out.startswith(
        "m1  in orders, group loader, 2026-11-20T10:00:00Z to 2026-11-20T11:00:00Z\n"
    )
    assert reported.err == "tieout: looking for the message\n"
    assert json.loads(document.out)["messages"][0]["message_id"] == "m1"
    assert [window is None for window, _ in engine.followed] == [False, True]


def test_trace_of_an_unknown_message_is_undecided(contract: Path) -> None:
    """No row anywhere is exit code 3, as nothing was found out."""
    ended = run("trace", contract, "m1", *WINDOW)

    assert (ended.code, ended.out) == (3, "no ledger of orders has message_id m1\n")


@pytest.mark.parametrize(
    ("words", "requested"),
    [
        (("m1",), TraceRequest(RequestedBy.MESSAGE_ID, "m1")),
        (("a/b-c/3/17",), TraceRequest(RequestedBy.POSITION, "a/b-c/3/17", ("a/b-c", 3, 17))),
        (("--id", "a/3/17"), TraceRequest(RequestedBy.MESSAGE_ID, "a/3/17")),
        (("--key", "a/3/17"), TraceRequest(RequestedBy.KEY, "a/3/17")),
    ],
)
def test_trace_takes_an_id_a_position_or_a_key(
    contract: Path, words: tuple[str, ...], requested: TraceRequest
) -> None:
    """The position's topic may hold slashes and dashes; an id of that form has an option of its own."""
    engine = FakeEngine()

    run("trace", contract, *words, engine=engine)

    assert engine.followed == [(None, requested)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "expected one of MESSAGE, --id and --key, found none"),
        (("m1", "--key", "k"), "expected one of MESSAGE, --id and --key, found 2 of them"),
        (("m1", *WINDOW[:2]), "expected both --from and --to, or neither; --to is missing"),
        (("m1",), "expected TOPIC/PARTITION/OFFSET such as orders/0/17, found 'm1'"),
    ],
)
def test_trace_refuses_what_it_cannot_ask(contract: Path, words: tuple[str, ...], expected: str) -> None:
    """One message, one way to name it; where positions identify, an id is none."""
    contract.write_text(CONTRACT + "identity: position\n")
    engine = FakeEngine()

    refused = run("trace", contract, *words, engine=engine)

    assert (refused.code, engine.followed) == (2, [])
    assert expected in refused.err


PERIOD = ("--from", "2026-11-20T10:00:00Z", "--to", "2026-11-20T11:00:00Z")


def test_a_period_is_reported_from_statements(contract: Path, tmp_path: Path) -> None:
    """Of a window's several statements the latest counts; the exit code is the gravest verdict."""
    for name, verdict, at in (("a", "KEPT", "13:00"), ("b", "BROKEN", "12:00")):
        order = Order(
            load_contract(contract),
            Window(datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC)),
            name,
            datetime.fromisoformat(f"2026-11-20T{at}:00Z"),
        )
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "statement.json").write_text(json.dumps(statement(order, verdict)))

    both = run("report", *PERIOD, "--statements", tmp_path / "runs")
    broken = run("report", *PERIOD, "--statements", tmp_path / "runs" / "b", "--json")
    page = run(
        "report", *PERIOD, "--statements", tmp_path / "runs", "--format", "html", "--output", tmp_path / "r"
    )
    other = run("report", *PERIOD, "--statements", tmp_path / "runs", "--pipeline", "other")

    assert (both.code, broken.code, page.code, other.code) == (0, 1, 0, 3)
    assert "  Windows: 1 judged of 1 expected: KEPT 1" in both.out.splitlines()
    assert json.loads(broken.out)["pipelines"][0]["windows"][0]["run_id"] == "b"
    assert page.out == ""
    assert (tmp_path / "r").read_text().startswith("<!doctype html>")


def test_a_report_without_statements_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither an empty folder, nor another program's file, nor a store that nobody named."""
    monkeypatch.delenv("TIEOUT_DATABASE_URL", raising=False)
    (tmp_path / "statement.json").write_text('{"pipeline": "orders"}')

    wrong = run("report", *PERIOD, "--statements", tmp_path)
    empty = run("report", *PERIOD, "--statements", tmp_path / "none")
    unset = run("report", *PERIOD)

    assert (wrong.code, empty.code, unset.code) == (2, 2, 2)
    assert "statement.json: expected a statement of tieout reconcile" in wrong.err
    assert "expected a folder with statement.json files in it, found none" in empty.err
    assert "TIEOUT_DATABASE_URL is not set" in unset.err


def test_schemas_are_printed() -> None:
    """Editors take the contract's, programs that read statements the statement's."""
    assert json.loads(run("schema").out) == json_schema()
    assert json.loads(run("schema", "statement").out) == statement_schema()
    assert json.loads(run("schema", "trace").out) == trace_schema()


def test_commands_without_evidence_load_no_spark(contract: Path) -> None:
    """Help and check answer at once; Spark alone would take seconds."""
    program = (
        "import sys; from tieout.cli.main import main; code = main(sys.argv[1:]); "
        "heavy = {'pyspark', 'pandas', 'airflow', 'great_expectations', 'psycopg2'} & set(sys.modules); "
        "sys.exit(f'loaded {heavy}' if heavy else code)"
    )

    ended = subprocess.run(
        [sys.executable, "-c", program, "check", str(contract)], capture_output=True, text=True, check=False
    )

    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_reader_that_has_seen_enough_is_no_failure(contract: Path) -> None:
    """`tieout check … | head` keeps the command's own exit code."""

    class Closed(io.StringIO):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    assert main(["check", str(contract)], out=Closed(), err=io.StringIO()) == 0


@pytest.mark.parametrize(("given", "code"), [("orders.yml", 0), ("missing.yml", 2)])
def test_what_standard_error_cannot_take_changes_no_exit_code(given: str, code: int, contract: Path) -> None:
    """A log on a full disk is no broken window: exit code 1 says that alone."""
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "tieout.cli", "check", str(contract.with_name(given))],
            stdout=subprocess.PIPE, stderr=full, check=False,
        )  # fmt: skip

    assert ended.returncode == code


def test_steps_go_on_where_standard_error_is_gone(contract: Path, tmp_path: Path) -> None:
    """`tieout reconcile … 2>&1 | head` judges the window and keeps its verdict's code."""

    class Closed(io.StringIO):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    arguments = ["reconcile", str(contract), *WINDOW, "--output", str(tmp_path / "out")]

    assert main(arguments, engine=FakeEngine(), out=io.StringIO(), err=Closed()) == 0
    assert (tmp_path / "out" / "statement.html").exists()


def test_a_stream_that_is_closed_from_the_start_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """`tieout check … >&-`: who closes the output wants the exit code alone."""
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)

    assert main(["schema"]) == 0


def test_the_module_is_the_command() -> None:
    """`python -m tieout.cli` works where the script is not on the path."""
    ended = subprocess.run(
        [sys.executable, "-m", "tieout.cli", "--version"], capture_output=True, text=True, check=False
    )

    assert (ended.returncode, ended.stdout.split()[0]) == (0, "tieout")


ENRICH, ROUTE, TABLE = (
    CONTRACT.replace("pipeline: orders", f"pipeline: {name}{after}")
    for name, after in (
        ("enrich", ""),
        ("route", "\nafter: {pipeline: enrich, id: (.+)/route}"),
        ("table", "\nafter: route"),
    )
)


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """A folder with three hops, one after the other, and a file that is no contract."""
    for name, text in (("enrich", ENRICH), ("route", ROUTE), ("table", TABLE), ("other", "version: 7\n")):
        (tmp_path / f"{name}.yml").write_text(text)
    return tmp_path


def test_trace_goes_over_the_chain(chain: Path) -> None:
    """Each hop is asked for the id that the message has there, the named one first."""
    engine = FakeEngine()

    reported = run("trace", chain / "table.yml", "m1/route", *WINDOW, engine=engine)

    requested = dict(zip(engine.hops, (each.value for _, each in engine.followed), strict=True))
    assert requested == {"table": "m1/route", "enrich": "m1", "route": "m1/route"}
    assert engine.hops[0] == "table"
    assert [line for line in reported.out.splitlines() if line.startswith(("hop", "chain"))] == [
        "hop 1 of 3: enrich",
        "hop 2 of 3: route, after enrich",
        "hop 3 of 3: table, after route",
        "chain: could not tell whether enrich lost it: in no ledger; could not tell whether route lost it: in no "
        "ledger; could not tell whether table lost it: in no ledger",
    ]
    assert reported.code == 3


def test_a_hop_whose_id_is_not_known_is_not_asked(chain: Path) -> None:
    """An expression says which id a message had before, and not which one it gets."""
    engine = FakeEngine()

    found = json.loads(run("trace", chain / "enrich.yml", "m1", "--json", engine=engine).out)

    assert engine.hops == ["enrich"]
    assert [(hop["pipeline"], hop["state"], hop["note"]) for hop in found["hops"]] == [
        ("enrich", "in no ledger", None),
        ("route", "not asked", "which id the message has here is not known; ask route for it"),
        ("table", "not asked", "which id the message has here is not known; ask table for it"),
    ]


def test_a_hop_that_lies_elsewhere_is_named(chain: Path) -> None:
    """Its contract is not beside the one that was asked."""
    (chain / "enrich.yml").unlink()

    reported = run("trace", chain / "route.yml", "m1/route")

    assert "hop 1 of 3: enrich\n  no contract beside route's has the pipeline enrich\n" in reported.out


def test_one_hop_may_be_asked_alone(chain: Path) -> None:
    """As if it were no hop."""
    engine = FakeEngine()

    reported = run("trace", chain / "table.yml", "m1", "--alone", engine=engine)

    assert engine.hops == ["table"]
    assert reported.out == "no ledger of table has message_id m1\n"


def test_another_hop_is_judged_in_the_window_of_the_messages_first_attempt_there(chain: Path) -> None:
    """Of the length of the window that was asked for."""
    judged = {"is_judged_here": False, "first_attempt": {"at": "2026-11-20T11:00:00.5Z"}}
    engine = FakeEngine(subjects=(Subject("m1", (), judged, (), {}),))

    run("trace", chain / "table.yml", "m1", *WINDOW, engine=engine)

    starts = [window and window.start.isoformat() for window, _ in engine.followed]
    ten, eleven = "2026-11-20T10:00:00+00:00", "2026-11-20T11:00:00+00:00"
    assert list(zip(engine.hops, starts, strict=True)) == [("table", ten), ("route", ten), ("route", eleven)]


def test_check_tells_of_a_predecessor_that_is_not_there(chain: Path) -> None:
    """It is a mistake of whoever asks, and stops no DAG."""
    (chain / "other.yml").unlink()
    (chain / "enrich.yml").unlink()

    checked = run("check", chain)

    assert checked.code == 2
    assert checked.err == (
        f"{chain}/route.yml:3: after: no contract here has the pipeline enrich; expected one of route, table\n"
    )

"""Contracts as values: defaults, digests, JSON and back, folders of them."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st
from pydantic import ValidationError

from tieout.contracts import Contract, FilesSource, load_contract, load_contracts
from tieout.contracts.columns import CANONICAL_COLUMNS
from tieout.contracts.cron import check_cron
from tieout.contracts.durations import LONGEST, format_duration, parse_duration
from tieout.contracts.times import format_time, parse_time
from tieout.engine.ledger import SCHEMAS
from tieout.model import Guarantee, Ledger, Severity

TEXT = """\
version: 1
pipeline: {pipeline}
guarantee: at_least_once
group: loader
max_latency: 20m
ledgers:
  produced: {{source: {{kind: files, format: csv, path: a.csv, options: {{ignoreLeadingWhiteSpace: true}}}}}}
  delivered: {{source: {{kind: verifiable_consumer, path: out.txt}}}}
alerts: [{{to: webhook, connection: ops}}]
"""
PRODUCED = {"source": {"kind": "files", "format": "jsonl", "path": "a.jsonl"}}

words = st.text("abc =?'_é\n", min_size=1, max_size=8).filter(str.strip)
durations = st.timedeltas(timedelta(0), LONGEST / 3)
settings = st.one_of(words, st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False))


@st.composite
def contracts(draw: st.DrawFn) -> Contract:
    """Return contracts with every kind of field filled in at random."""
    latency, skew, extra = draw(durations), draw(durations), draw(durations)
    coverage: Any = draw(st.one_of(st.none(), st.just("declared"), st.builds(dict, watermark_file=words)))
    fields: dict[str, Any] = {
        "version": 1,
        "pipeline": draw(st.from_regex(r"[a-z][a-z0-9_]{0,30}", fullmatch=True)),
        "guarantee": draw(st.sampled_from(Guarantee)),
        "group": draw(words),
        "schedule": draw(st.sampled_from([None, "@hourly", "*/5 0 * * mon-fri"])),
        "timezone": draw(st.sampled_from(["UTC", "Europe/Berlin"])),
        "max_latency": latency,
        "clock_skew": skew,
        "grace": latency + skew + extra,
        "budgets": {"late_ratio": draw(st.none() | st.floats(0, 1))},
        "ledgers": {
            Ledger.PRODUCED: {**PRODUCED, "columns": {"message_id": draw(words)}, "coverage": coverage},
            Ledger.READ: {"source": {"kind": "jdbc", "connection": "db", "query": draw(words)}},
        },
        "settings": {"producer": draw(st.dictionaries(words, settings, max_size=3))},
        "annotations": [{"at": draw(st.datetimes(timezones=st.just(UTC))), "kind": "offset_reset"}],
        "alerts": [{"to": "slack", "connection": "ops", "at": draw(st.sampled_from(Severity))}],
    }
    return Contract(**fields)


@how(deadline=None)
@given(contracts())
def test_json_carries_a_contract_unchanged(contract: Contract) -> None:
    """What goes to a Spark job as text comes out equal, with the same digest and text."""
    found = Contract.from_json(contract.to_json(), contract.base_dir)

    assert found == contract
    assert (found.to_json(), found.digest) == (contract.to_json(), contract.digest)
    assert pickle.loads(pickle.dumps(contract)) == contract  # noqa: S301 - our own bytes


@given(durations)
def test_durations_are_read_back_as_written(duration: timedelta) -> None:
    """Every duration has one text, down to the microsecond."""
    assert parse_duration(format_duration(duration)) == duration


@given(st.datetimes(timezones=st.timezones()))
def test_times_are_read_back_as_written(moment: datetime) -> None:
    """Every time has one text in UTC, whatever zone it was given in."""
    try:
        in_utc = moment.astimezone(UTC)
    except OverflowError:
        return

    assert parse_time(format_time(moment)) == in_utc


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0s", 0), ("250ms", 0.25), ("1h30m", 5400), ("1w", 604_800), ("PT15M", 900), ("P1DT0.5S", 86_400.5)],
)
def test_durations_have_two_forms(text: str, seconds: float) -> None:
    """Short forms and ISO 8601 mean the same."""
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "15", "-5m", "1.5h", "5m1h", "1m1m", "15 m", "5M"])
def test_other_texts_are_no_durations(text: str) -> None:
    """A number without its unit, a sign, a wrong order or a repeated unit is refused."""
    with pytest.raises(ValueError, match="expected a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    "expression",
    ["0 * * * *", "*/15 0-6,22 1,15 jan-mar MON", "5/10 * * * 7", "@daily", "0 0 31 * *", "0 0 31 2 1"],
)
def test_cron_expressions_are_accepted(expression: str) -> None:
    """Five fields with lists, ranges, steps and names, or a preset."""
    assert check_cron(expression) == expression


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("* * * *", "expected a cron expression of five fields"),
        ("0 0 * * * *", "expected a cron expression of five fields"),
        ("@reboot", "expected a cron expression of five fields"),
        ("60 * * * *", "cron minute: expected 0 to 59, found '60'"),
        ("²  * * * *", "cron minute: expected 0 to 59, found '²'"),
        ("* * 0 * *", "cron day of the month: expected 1 to 31, found '0'"),
        ("* * * foo *", "cron month: expected 1 to 12, found 'foo'"),
        ("*/0 * * * *", "cron minute: expected a step of 1 or more"),
        ("5-1 * * * *", "cron minute: expected a rising range"),
        ("1,,2 * * * *", "cron minute: expected 0 to 59, found ''"),
        ("0 0 30 2 *", "never happens"),
        ("0 0 31 4,6,9,11 *", "never happens"),
    ],
)
def test_wrong_cron_expressions_are_refused(expression: str, reason: str) -> None:
    """The field that is wrong is named; a date that no year has is no schedule."""
    with pytest.raises(ValueError, match=reason):
        check_cron(expression)


def test_the_canonical_columns_are_the_engines() -> None:
    """Contracts check names without Spark; the list may not drift from the schemas that rows conform to."""
    assert {ledger: tuple(schema.fieldNames()) for ledger, schema in SCHEMAS.items()} == CANONICAL_COLUMNS


def test_defaults_are_filled_in(tmp_path: Path) -> None:
    """What a contract leaves out has the documented value, and grace follows from what is longer."""
    file = tmp_path / "a.yml"
    file.write_text(TEXT.format(pipeline="a"))

    contract = load_contract(file)

    assert (contract.margin, contract.grace, contract.clock_skew) == (
        timedelta(minutes=15),
        timedelta(minutes=20),
        timedelta(0),
    )
    assert (contract.identity, contract.id_scope, contract.ordering) == ("message_id", "global", "none")
    assert contract.alerts[0].at is Severity.WARNING
    source = contract.ledgers[Ledger.PRODUCED].source
    assert isinstance(source, FilesSource)
    assert (source.path, source.options) == (("a.csv",), {"ignoreLeadingWhiteSpace": True})


def test_the_digest_depends_on_the_meaning_only(tmp_path: Path) -> None:
    """Order of keys, comments, spellings, the file's folder and `replay`, which no judge reads, change nothing."""
    spellings = {
        "first": TEXT.format(pipeline="a"),
        "second": "# moved\n"
        + "\n".join(reversed(TEXT.format(pipeline="a").splitlines()[:5])).replace("20m", "PT1200S")
        + "\n"
        + "\n".join(TEXT.format(pipeline="a").splitlines()[5:]),
        "other": TEXT.format(pipeline="a").replace("20m", "21m"),
        "repairable": TEXT.format(pipeline="a") + "\nreplay: {value: body}\n",
    }
    digests = {}
    for name, text in spellings.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "c.yml").write_text(text)
        digests[name] = load_contract(tmp_path / name / "c.yml").digest

    assert digests["first"] == digests["second"] == digests["repairable"] != digests["other"]
    assert len(digests["first"]) == 64


def test_yaml_means_what_it_looks_like(tmp_path: Path) -> None:
    """`on`, `no`, `10:30`, `010` and dates keep their text or plain value, as YAML 1.2 has it."""
    file = tmp_path / "a.yml"
    file.write_text(
        TEXT.format(pipeline="a")
        + "owner: no\ndescription: 2026-11-20\n"
        + "settings: {consumer: {on: off, at: 10:30, n: 010, x: 0x1F, f: 1.5, e: 1e3, t: true, s: '5'}}\n"
    )

    contract = load_contract(file)

    assert (contract.owner, contract.description) == ("no", "2026-11-20")
    assert contract.settings.consumer == {
        "on": "off", "at": "10:30", "n": 10, "x": "0x1F", "f": 1.5, "e": 1000.0, "t": True, "s": "5",
    }  # fmt: skip


def test_a_contract_cannot_be_changed(tmp_path: Path) -> None:
    """A contract is a value; another one is made by loading another file."""
    file = tmp_path / "a.yml"
    file.write_text(TEXT.format(pipeline="a"))
    contract: Any = load_contract(file)

    with pytest.raises(ValidationError):
        contract.group = "other"


def test_one_bad_file_does_not_hide_the_good_ones(tmp_path: Path) -> None:
    """Each bad file is one error, each good one a contract; other files are not looked at."""
    (tmp_path / "b.yml").write_text(TEXT.format(pipeline="b"))
    (tmp_path / "a.yaml").write_text(TEXT.format(pipeline="a"))
    (tmp_path / "bad.yml").write_bytes(b"\xff")
    (tmp_path / "notes.txt").write_text("not a contract")
    (tmp_path / ".hidden.yml").write_text("not a contract")
    (tmp_path / "folder.yml").mkdir()
    (tmp_path / "gone.yml").symlink_to(tmp_path / "nowhere")

    contracts, errors = load_contracts(tmp_path)

    assert [contract.pipeline for contract in contracts] == ["a", "b"]
    assert [str(error).removeprefix(f"{tmp_path}/") for error in errors] == [
        "bad.yml:1: not UTF-8: byte 0xff",
        "gone.yml: no such file",
    ]


def test_two_files_with_one_pipeline_are_both_errors(tmp_path: Path) -> None:
    """Neither is taken for the one that is meant, even from two folders; a third pipeline is unharmed."""
    files = [tmp_path / "one" / "a.yml", tmp_path / "two" / "a.yml"]
    for file in files:
        file.parent.mkdir()
        file.write_text(TEXT.format(pipeline="a"))
    (tmp_path / "one" / "b.yml").write_text(TEXT.format(pipeline="b"))

    contracts, errors = load_contracts(tmp_path / "one", tmp_path / "two")

    assert [contract.pipeline for contract in contracts] == ["b"]
    assert [str(error) for error in errors] == [
        f"{files[0]}:2: pipeline: a is also the name of {files[1]}; names are unique",
        f"{files[1]}:2: pipeline: a is also the name of {files[0]}; names are unique",
    ]


def test_a_missing_folder_is_one_error(tmp_path: Path) -> None:
    """A folder of contracts that is not there is told, not taken for an empty one."""
    contracts, errors = load_contracts(tmp_path / "none")

    assert contracts == ()
    assert [error.reason for error in errors] == [
        "the contracts' folder cannot be read: No such file or directory"
    ]


@pytest.mark.parametrize(
    ("source", "connectors"),
    [
        ("{kind: files, format: jsonl, path: a.jsonl}", set()),
        ("{kind: files, format: delta, path: lake/orders}", {"delta"}),
        ("{kind: files, format: iceberg, path: lake/orders}", {"iceberg"}),
        ("{kind: kafka, connection: events, topic: orders}", {"kafka"}),
        ("{kind: kafka_segments, path: log, topic: orders}", set()),
    ],
)
def test_a_contract_says_what_spark_needs_to_read_it(
    tmp_path: Path, source: str, connectors: set[str]
) -> None:
    """A session takes jars and settings along for what its contract reads, and for nothing else."""
    file = tmp_path / "a.yml"
    text = TEXT.format(pipeline="a").replace("alerts:", f"  log: {{source: {source}}}\nalerts:")
    file.write_text(text)

    assert load_contract(file).connectors == connectors


def test_a_second_position_may_be_another_groups(tmp_path: Path) -> None:
    """A sink of Kafka Connect is the group `connect-<name>`, whatever its output calls it."""
    file = tmp_path / "a.yml"
    source = "{kind: kafka_consumer_groups, path: groups.txt, group: connect-orders}"
    ledgers = f"  committed: {{source: {source}}}\n  mirrored: {{source: {source}}}\nalerts:"
    file.write_text(TEXT.format(pipeline="a").replace("alerts:", ledgers))

    contract = load_contract(file)

    assert contract.group_of(Ledger.MIRRORED) == "connect-orders"
    assert contract.group_of(Ledger.COMMITTED) == contract.group_of(Ledger.DELIVERED) == "loader"

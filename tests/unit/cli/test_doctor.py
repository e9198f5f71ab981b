"""`tieout doctor` and `tieout airflow init`: what is missing is named, each in one line with what to do."""

from __future__ import annotations

import io
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tieout import __version__
from tieout.cli.dag_files import DAG_FILES, is_current
from tieout.cli.doctor import airflow_setup, examining, spark_setup
from tieout.cli.doctor.airflow_cli import CommandAnswer
from tieout.cli.doctor.finding import Finding
from tieout.cli.main import main


def answer(*records: dict[str, object], last: str = "", is_answered: bool = True) -> CommandAnswer:
    """What Airflow's command line answered."""
    return CommandAnswer(records, last, is_answered)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, CommandAnswer]:
    """What Airflow answers, by the first word of the question; complete, unless a test changes it."""
    given = {
        "config": answer(last=str(tmp_path)),
        "pools": answer({"pool": "spark", "slots": "2"}),
        "connections": answer({"conn_type": "spark", "host": "local[2]", "port": None, "extra_dejson": {}}),
    }
    monkeypatch.setattr(airflow_setup, "airflow_answer", lambda *words: given[words[0]])
    main(["airflow", "init", str(tmp_path)], out=io.StringIO(), err=io.StringIO())
    return given


def missing(findings: list[Finding]) -> dict[str, str]:
    """Return the lines of what is missing, by subject."""
    return {finding.subject: finding.line() for finding in findings if not finding.is_there}


def test_a_complete_airflow_lacks_nothing_and_names_its_master(answers: dict[str, CommandAnswer]) -> None:
    """DAG files, pool and connection are found as Airflow tells them."""
    assert answers

    findings, master = airflow_setup.examine_airflow()

    assert missing(findings) == {}
    assert [finding.subject for finding in findings] == ["airflow", "DAG files", "pool", "connection"]
    assert master == "local[2]"


@pytest.mark.parametrize(
    ("question", "answer", "subject", "line"),
    [
        ("config", answer(last="no such table", is_answered=False), "DAG files", "airflow db migrate"),
        ("config", answer(last="/nowhere"), "DAG files", "tieout airflow init /nowhere"),
        (
            "pools",
            answer(last="Pool spark does not exist", is_answered=False),
            "pool",
            "airflow pools set spark 2",
        ),
        (
            "pools",
            answer(last="OperationalError: no such table: slot_pool", is_answered=False),
            "pool",
            "no such table: slot_pool: airflow db migrate; then airflow pools set spark 2",
        ),
        (
            "connections",
            answer(last="Connection not found.", is_answered=False),
            "connection",
            "connections add",
        ),
        ("connections", answer({"host": None, "port": None}), "connection", "spark_default names no master"),
        (
            "connections",
            answer({"host": "yarn", "extra": '{"deploy-mode": "cluster"}'}),
            "connection",
            "only client works",
        ),
    ],
)
def test_what_airflow_lacks_is_one_line_with_what_to_do(
    answers: dict[str, CommandAnswer], question: str, answer: CommandAnswer, subject: str, line: str
) -> None:
    """Each thing by itself; the others are still found."""
    answers[question] = answer

    lacking = missing(airflow_setup.examine_airflow()[0])

    assert set(lacking) == {subject}
    assert line in lacking[subject]
    assert "\n" not in lacking[subject]


def test_without_airflow_it_is_said_where_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is asked then."""
    monkeypatch.setattr(airflow_setup, "airflow_version", lambda: None)

    findings, master = airflow_setup.examine_airflow()

    assert 'pip install "tieout[airflow]"' in missing(findings)["airflow"]
    assert master is None


def test_an_airflow_that_was_never_tried_is_named(
    answers: dict[str, CommandAnswer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer one may have moved what is imported."""
    assert answers
    monkeypatch.setattr(airflow_setup, "airflow_version", lambda: "3.9.1")

    assert "3.9.1" in missing(airflow_setup.examine_airflow()[0])["airflow"]


@pytest.fixture
def listening() -> Iterator[int]:
    """A port that something listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_master_is_there_where_something_listens(listening: int) -> None:
    """One of several is enough, as for standby masters."""
    for master in (
        f"spark://127.0.0.1:{listening}",
        f"spark://127.0.0.1:1,127.0.0.1:{listening}",
        "local[4]",
    ):
        assert missing(list(spark_setup.examine_master(master))) == {}, master


def test_a_master_that_nobody_reaches_is_named() -> None:
    """With the address that was tried."""
    (line,) = missing(list(spark_setup.examine_master("spark://127.0.0.1:1"))).values()

    assert "127.0.0.1:1 cannot be reached" in line


def test_yarn_needs_its_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in the connection says where its resource manager is."""
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)

    assert "HADOOP_CONF_DIR" in missing(list(spark_setup.examine_master("yarn")))["spark master"]
    monkeypatch.setenv("YARN_CONF_DIR", "/etc/hadoop")
    assert missing(list(spark_setup.examine_master("yarn"))) == {}


def test_executors_of_another_version_or_without_the_folder_are_named() -> None:
    """Host by host."""
    seen = [
        _seen("one"),
        _seen("two", packages={"tieout": "0.0.9", "duckdb": None, "pyarrow": "26.0.1"}, sees_home=False),
    ]

    lacking = missing(list(spark_setup._of_executors(seen)))

    assert set(lacking) == {"executors' packages", "shared folder"}
    assert "duckdb missing on two, tieout 0.0.9 on two" in lacking["executors' packages"]
    assert "is not that of two" in lacking["shared folder"]
    assert missing(list(spark_setup._of_executors(seen[:1]))) == {}


def _seen(host: str, **changes: object) -> dict[str, object]:
    packages = {"tieout": __version__, "duckdb": "2.0.1", "pyarrow": "26.0.1"}
    return {
        "host": host,
        "python": "3.11",
        "executable": "/opt/python",
        "packages": packages,
        "sees_home": True,
        **changes,
    }


def test_the_store_and_the_home_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default home would be another folder for each worker."""
    monkeypatch.delenv("TIEOUT_DATABASE_URL", raising=False)
    monkeypatch.delenv("TIEOUT_HOME", raising=False)

    assert "TIEOUT_DATABASE_URL is not set" in missing(list(examining._database()))["database"]
    assert "TIEOUT_HOME is not set" in missing(list(examining._shared_home()))["home"]


def test_the_dag_files_are_written_once(tmp_path: Path, answers: dict[str, CommandAnswer]) -> None:
    """Those of another version are replaced, those of this one left alone, and a folder for contracts is there."""
    assert answers
    (tmp_path / "tieout_upkeep.py").write_text("# of an older version\n")
    out = io.StringIO()

    main(["airflow", "init", str(tmp_path)], out=out, err=io.StringIO())

    assert f"replaced: {tmp_path / 'tieout_upkeep.py'}" in out.getvalue()
    assert f"unchanged: {tmp_path / 'tieout_replay.py'}" in out.getvalue()
    assert all(is_current(tmp_path / name) for name in DAG_FILES)
    assert (tmp_path / "contracts").is_dir()


def test_a_folder_that_is_none_is_an_error(tmp_path: Path) -> None:
    """Nothing is written elsewhere."""
    err = io.StringIO()

    assert main(["airflow", "init", str(tmp_path / "dags")], out=io.StringIO(), err=err) == 2
    assert "expected Airflow's folder of DAGs, found no folder" in err.getvalue()

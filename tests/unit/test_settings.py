"""Settings: what the environment says, and how connections are read as Airflow reads them."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

from tieout import settings
from tieout.connections import Connection, connection
from tieout.errors import ConnectionNotFoundError, UsageError
from tieout.spark_environment import hand_over, spark_environment, take_handed_over, trimmed_for_spark
from tieout.variables import VARIABLES

FORMS = {
    "json": json.dumps(
        {
            "conn_type": "postgresql",
            "host": "db.example",
            "port": "5433",
            "login": "loader",
            "password": "p@ss/word",
            "schema": "sales",
            "extra": {"sslmode": "require"},
        }
    ),
    "json with text inside": json.dumps(
        {
            "conn_type": "postgres",
            "host": "db.example",
            "port": 5433,
            "login": "loader",
            "password": "p@ss/word",
            "schema": "sales",
            "extra": '{"sslmode": "require"}',
        }
    ),
    "uri": "postgresql://loader:p%40ss%2Fword@db.example:5433/sales?sslmode=require",
    "uri with extra": "postgres://loader:p%40ss%2Fword@db.example:5433/sales"
    "?__extra__=%7B%22sslmode%22%3A+%22require%22%7D",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_every_form_of_a_connection_reads_the_same(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """JSON and URI, with the extra settings as a mapping or as text, are one connection."""
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", text)

    found = connection("warehouse")

    assert found == Connection(
        "warehouse", "postgres", "db.example", 5433, "loader", "p@ss/word", "sales", {"sslmode": "require"}
    )


@pytest.mark.parametrize(
    ("uri", "conn_type", "host", "port"),
    [
        ("http://https://Hooks.example:8443/path", "http", "https://Hooks.example", 8443),
        ("my-type://%2Ftmp%2FPg_Socket/db", "my_type", "/tmp/Pg_Socket", None),  # noqa: S108 - only a text
        ("postgres://[::1]:5432/db", "postgres", "::1", 5432),
        ("kafka://", "kafka", None, None),
    ],
)
def test_uris_read_as_airflow_reads_them(
    monkeypatch: pytest.MonkeyPatch, uri: str, conn_type: str, host: str | None, port: int | None
) -> None:
    """A nested scheme belongs to the host, dashes become underscores, and a host keeps its case."""
    monkeypatch.setenv("AIRFLOW_CONN_X", uri)

    found = connection("x")

    assert (found.conn_type, found.host, found.port) == (conn_type, host, port)


def test_a_connection_hides_its_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither `repr` nor `str` shows the password or the extra settings, which may hold tokens."""
    monkeypatch.setenv("AIRFLOW_CONN_X", "http://me:hunter2@host?token=t0ken")

    shown = f"{connection('x')!r} {connection('x')}"

    assert "me" in shown
    assert "hunter2" not in shown
    assert "t0ken" not in shown


def test_a_missing_connection_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says which variable to set, and to what."""
    monkeypatch.delenv("AIRFLOW_CONN_WAREHOUSE", raising=False)

    with pytest.raises(ConnectionNotFoundError, match="AIRFLOW_CONN_WAREHOUSE is not set; set it to a URI"):
        connection("warehouse")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"password": "hunter2"', "not JSON, at character 23"),
        ('{"password": "hunter2", "port": "many"}', "expected a port from 0 to 65535"),
        ('{"password": "hunter2", "host": 5}', "expected host to be text"),
        ('{"password": "hunter2", "extra": "[]"}', "expected extra to be a JSON object"),
        ("postgres://me:hunter2@host:99999/db", "expected a port from 0 to 65535"),
        ("me:hunter2", "expected JSON, or a URI"),
    ],
)
def test_a_wrong_connection_says_why_without_its_secret(
    monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    """The variable and the reason are named; what it holds is not repeated."""
    monkeypatch.setenv("AIRFLOW_CONN_X", text)

    with pytest.raises(ConnectionNotFoundError) as caught:
        connection("x")

    assert str(caught.value).startswith(f"connection x: AIRFLOW_CONN_X cannot be read: {reason}")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(("text", "days"), [("", None), ("35", 35), ("400", 400)])
def test_results_are_kept_for_ever_unless_a_number_of_days_is_given(
    monkeypatch: pytest.MonkeyPatch, text: str, days: int | None
) -> None:
    """Each kind by itself."""
    monkeypatch.setenv("TIEOUT_KEEP_BREAKS_DAYS", text)

    found = settings.retention()

    assert found.breaks == (None if days is None else timedelta(days=days))
    assert (found.superseded, found.statements) == (None, None)


@pytest.mark.parametrize("text", ["0", "34", "-40", "90d", "1e9", "999999999"])
def test_a_retention_that_would_delete_what_is_still_needed_is_refused(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """A slip must not empty the store."""
    monkeypatch.setenv("TIEOUT_KEEP_STATEMENTS_DAYS", text)

    with pytest.raises(
        UsageError, match="TIEOUT_KEEP_STATEMENTS_DAYS: expected a whole number of days from 35 on"
    ):
        settings.retention()


@pytest.mark.parametrize(
    ("limits", "heap"),
    [
        (["16777216000", None], "4000m"),
        (["max", None], "6000m"),
        ([None, "8388608000"], "2000m"),
        ([None, "9223372036854771712"], "6000m"),
        (["1048576000", None], "1024m"),
        ([None, None], "6000m"),
    ],
    ids=["container", "no limit", "older container", "older, no limit", "little", "no container"],
)
def test_java_gets_a_quarter_of_the_memory_there_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limits: list[str | None], heap: str
) -> None:
    """A million messages in Spark's own 1 GiB would be written to disk again and again."""
    files = [tmp_path / "v2", tmp_path / "v1"]
    for file, limit in zip(files, limits, strict=True):
        if limit is not None:
            file.write_text(f"{limit}\n")
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 24_000 * 256}
    monkeypatch.setattr(settings, "_CONTAINER_LIMITS", tuple(files))
    monkeypatch.setattr("os.sysconf", pages.__getitem__)
    monkeypatch.delenv("SPARK_DRIVER_MEMORY", raising=False)

    assert settings.driver_memory() == heap


def test_who_says_how_much_memory_spark_gets_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is Spark's own variable."""
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "3g")

    assert settings.driver_memory() == "3g"


def test_every_variable_is_in_the_reference() -> None:
    """What settings reads is what docs/reference/environment.md lists, in the same words."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "environment.md").read_text()
    read = {
        value for value in vars(settings).values() if isinstance(value, str) and value.startswith("TIEOUT_")
    }

    assert read
    assert read <= {variable.name for variable in VARIABLES}
    for variable in VARIABLES:
        assert f"| `{variable.name}` | {variable.default} | {variable.meaning} |" in page


def test_jars_go_along_for_what_a_contract_reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those of a table format only with it, all others with whatever needs any: the folder may hold one's own."""
    for name in (
        "delta-spark.jar",
        "delta-storage.jar",
        "iceberg-runtime.jar",
        "kafka.jar",
        "own.jar",
        "x.txt",
    ):
        (tmp_path / name).touch()
    monkeypatch.setenv("TIEOUT_JARS", str(tmp_path))

    found = {
        connectors: [jar.name for jar in settings.jars(connectors)]
        for connectors in ((), ("kafka",), ("delta",), ("iceberg", "kafka"))
    }

    assert found == {
        (): [],
        ("kafka",): ["kafka.jar", "own.jar"],
        ("delta",): ["delta-spark.jar", "delta-storage.jar", "kafka.jar", "own.jar"],
        ("iceberg", "kafka"): ["iceberg-runtime.jar", "kafka.jar", "own.jar"],
    }


def test_spark_gets_what_it_needs_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list says what is let through, so that a new secret is none of it; a deployment may add to it."""
    needed = dict.fromkeys(
        (
            "SPARK_LOCAL_DIRS",
            "LC_ALL",
            "PYTHONPATH",
            "_SPARK_AUTH_SECRET",
            "TIEOUT_UNPACKED_FILE_MB",
            "TIEOUT_BUCKET_MB",
            "TIEOUT_BUNDLES",
        ),
        "x",
    )
    secret = dict.fromkeys(
        ("TIEOUT_DATABASE_URL", "AIRFLOW_CONN_A", "AIRFLOW__CORE__FERNET_KEY", "PGPASSWORD"), "x"
    )
    for name in (*needed, *secret, "BUCKET_REGION", "AZURE_KEY"):
        monkeypatch.setenv(name, "x")
    before = dict(os.environ)

    found = spark_environment()
    assert needed.items() <= found.items()
    assert not {*secret, "BUCKET_REGION", "AZURE_KEY"} & found.keys()

    monkeypatch.setenv("TIEOUT_SPARK_VARIABLES", "BUCKET_*, OTHER")
    assert spark_environment() == {**found, "BUCKET_REGION": "x"}
    with trimmed_for_spark():
        assert dict(os.environ) == {**found, "BUCKET_REGION": "x"}
    assert dict(os.environ) == {**before, "TIEOUT_SPARK_VARIABLES": "BUCKET_*, OTHER"}


def test_what_is_handed_over_is_read_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By its owner alone; a file that another driver took is an error that says where it is looked for."""
    for name in ("AIRFLOW_CONN_A", "PGSSLROOTCERT"):
        monkeypatch.setenv(name, "of the task")
    file = tmp_path / "handover.json"
    hand_over({"AIRFLOW_CONN_A": "a secret"}, file)
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        hand_over({}, file)
    monkeypatch.delenv("PGSSLROOTCERT")
    take_handed_over()  # nothing was handed over: a driver that a person started

    monkeypatch.setenv("TIEOUT_HANDOVER_PATH", str(file))
    take_handed_over()
    assert (os.environ["AIRFLOW_CONN_A"], os.environ["PGSSLROOTCERT"]) == ("a secret", "of the task")
    assert not file.exists()

    monkeypatch.setenv("TIEOUT_HANDOVER_PATH", str(file))
    with pytest.raises(UsageError, match=r"expected the file .*handover\.json .* No such file"):
        take_handed_over()

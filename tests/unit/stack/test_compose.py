"""What compose.yaml gives to whom: a role and a secret for each part, and no superuser for any."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

ROOT = Path(__file__).parents[3]
SECRET = re.compile(r"\$\{(\w+)")


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    """The services, anchors resolved."""
    found: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    return found


def _secrets(service: dict[str, Any]) -> set[str]:
    named = SECRET.findall(" ".join(map(str, (service.get("environment") or {}).values())))
    return {name for name in named if not name.endswith("VERSION")}


def test_airflow_and_the_result_store_have_a_role_each(services: dict[str, dict[str, Any]]) -> None:
    """Neither is the superuser, and each has the password of its own role."""
    environment = services["scheduler"]["environment"]
    urls = {
        "tieout": environment["TIEOUT_DATABASE_URL"],
        "airflow": environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"],
    }

    assert services["postgres"]["environment"]["POSTGRES_USER"] == "postgres"
    for name, url in urls.items():
        assert urlsplit(re.sub(r":\?[^}]*", "", url)).username == name
        assert SECRET.findall(url) == [f"{name.upper()}_DATABASE_PASSWORD"]
        assert url.endswith(f"@postgres:5432/{name}")


def test_a_secret_is_known_where_it_is_needed(services: dict[str, dict[str, Any]]) -> None:
    """The superuser's to PostgreSQL alone, Spark's to driver, master and workers, no database's to Spark's own."""
    who = {name: _secrets(service) for name, service in services.items()}

    assert {name for name, known in who.items() if "POSTGRES_PASSWORD" in known} == {"postgres"}
    spark = {name for name, known in who.items() if "SPARK_SECRET" in known}
    assert spark == {"scheduler", "spark-master", "spark-worker"}
    assert who["spark-master"] == who["spark-worker"] == {"SPARK_SECRET"}
    for name in ("spark-master", "spark-worker"):
        assert "-Dspark.authenticate=true" in services[name]["environment"]["SPARK_DAEMON_JAVA_OPTS"]
    named = [SECRET.findall(str(value)) for value in services["scheduler"]["environment"].values()]
    used = [name for names in named for name in names]
    assert len(used) == len(set(used)) >= 5, "no secret serves twice"


def test_the_secrets_are_written_once_for_their_owner_alone(
    tmp_path: Path, services: dict[str, dict[str, Any]]
) -> None:
    """Mode 600, each of its own, every one that compose.yaml asks for; git does not take the file."""
    (tmp_path / "scripts").mkdir()
    script = shutil.copy(ROOT / "scripts" / "compose-secrets.sh", tmp_path / "scripts")
    environment = {"PATH": os.environ["PATH"]}

    subprocess.run(["bash", script], env=environment, check=True, umask=0o022)
    first = (tmp_path / ".env").read_text()
    (tmp_path / ".env").chmod(0o644)
    subprocess.run(["bash", script], env=environment, check=True, umask=0o022, capture_output=True)

    assert (tmp_path / ".env").read_text() == first
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"scripts", ".env"}
    written = dict(line.split("=", 1) for line in first.splitlines())
    assert set(written) == {name for service in services.values() for name in _secrets(service)}
    assert len(set(written.values())) == len(written)
    assert all(len(value) >= 44 for value in written.values())
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines()

"""The wheel in an Airflow that is already there, with no checkout: from the installation to the page of a window.

Airflow 3.3 by default; TIEOUT_AIRFLOWS names others, `3.1,3.2,3.3` for all. Each environment takes 1.3 GB.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.existing_airflow.site import MASTER, ROOT, Site
from tests.store.examples import command, database_url

from tieout.contracts import load_contract

pytestmark = pytest.mark.timeout(2400)
VERSIONS = tuple(os.environ.get("TIEOUT_AIRFLOWS", "3.3").split(","))
EXAMPLE = ROOT / "examples" / "commit_before_process"
PIPELINE = "readings_to_archive"
OURS = {"tieout_upkeep", "tieout_gap_audit", "tieout_replay"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    words = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module", params=VERSIONS)
def site(
    request: pytest.FixtureRequest, wheel: Path, postgres_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """An Airflow with its database, and the wheel installed into it; nothing is set up for Tieout."""
    names = [f"{name}_{request.param.replace('.', '')}" for name in ("airflow", "tieout")]
    for name in names:
        command(postgres_url, f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    home = tmp_path_factory.mktemp(f"airflow-{request.param}")
    airflow, tieout = (database_url(postgres_url, name) for name in names)
    site = Site(home, request.param, airflow, tieout)
    site.install_airflow()
    site.ran("airflow", "db", "migrate")
    site.install_tieout(wheel)
    yield site
    shutil.rmtree(home / "venv", ignore_errors=True)


def test_from_the_installation_to_the_page_of_a_window(site: Site) -> None:
    """What is missing is named with what to do; done as told, a window is judged by the scheduler, and has its page."""
    bare = site.run("tieout", "doctor", environment=site.environment())

    assert bare.returncode == 2, bare.stdout + bare.stderr
    missing = {line.split()[1] for line in bare.stdout.splitlines() if line.startswith("missing")}
    assert missing == {"DAG", "pool", "connection", "database", "home"}, bare.stdout

    site.ran("airflow", "pools", "set", "spark", "2", "Spark jobs at a time")
    site.ran("airflow", "connections", "add", "spark_default", "--conn-json", MASTER)
    site.ran("tieout", "migrate")
    reported = site.ran("tieout", "airflow", "init", str(site.dags))

    assert "missing" not in reported, reported
    assert sorted(path.name for path in site.dags.glob("*.py")) == [
        "tieout_pipelines.py",
        "tieout_replay.py",
        "tieout_upkeep.py",
    ]

    shutil.copytree(EXAMPLE, site.dags / "contracts", dirs_exist_ok=True)
    window = load_contract(EXAMPLE / "contract.yml").active
    assert window.from_ is not None
    assert window.until is not None
    with site.running():
        site.wait("the DAGs to be listed", lambda: {PIPELINE, *OURS} <= site.api.dag_ids())
        assert site.api.import_errors() == ()
        assert site.api.get("/plugins/importErrors")["import_errors"] == []
        run_id, state = site.judge(PIPELINE, window.from_.isoformat())
        page = site.page(f"/tieout/pipelines/{PIPELINE}/windows/{_iso(window.from_)}/{_iso(window.until)}")
        links = site.api.get(f"/dags/{PIPELINE}/dagRuns/{run_id}/taskInstances/verdict/links")["extra_links"]

        assert state == "failed"
        assert "BROKEN" in page
        assert "LOST" in page
        assert "BROKEN" in site.page(links["Window"].removeprefix(site.address))
        assert "LOST" in site.page(links["Incident"].removeprefix(site.address))
    print(site.output())


def _iso(moment: object) -> str:
    return str(moment).replace(" ", "T").replace("+00:00", "Z")

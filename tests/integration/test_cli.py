"""The command `tieout` as people start it: its own process, local Spark, real recordings.

Where what is printed by Java does not matter, it is called in this process: to start a Spark takes longest.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.engine.conftest import spark
from tests.integration.judging import engine_on

from tieout.cli.main import main
from tieout.reporting.schema import statement_schema, trace_schema

__all__ = ["spark"]

pytestmark = pytest.mark.timeout(1_000)

EXAMPLE = Path(__file__).parents[2] / "examples" / "commit_before_process"


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the recording, so that tests may spoil it."""
    return shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("example") / "recording")


@pytest.fixture(scope="module")
def truth() -> dict[str, Any]:
    """What the recorder knew of the recording."""
    return dict(json.loads((EXAMPLE / "truth.json").read_text()))


def tieout(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "tieout.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, timeout=900)


def called(*arguments: str | Path, spark: SparkSession) -> tuple[int, str, str]:
    """Run the command in this process and return its exit code, its output and what it says of its progress."""
    out, err = io.StringIO(), io.StringIO()
    code = main([*map(str, arguments)], engine=engine_on(spark), out=out, err=err)
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def reconciled(
    example: Path, truth: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """One run over the recording's window, and where it wrote; its bundle is there as well."""
    folder = tmp_path_factory.mktemp("work")
    window = truth["window"]
    ended = tieout(
        "reconcile", example / "contract.yml", "--from", window["start"], "--to", window["end"], "--output", "out",
        "--bundle", "out.zip", "--without-contents", cwd=folder,
    )  # fmt: skip
    return ended, folder


def test_a_broken_guarantee_is_exit_code_1(
    reconciled: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    """The statement is on standard output, progress on standard error."""
    ended, _ = reconciled

    assert ended.returncode == 1, ended.stderr
    assert ended.stdout.startswith("BROKEN  readings_to_archive\nat_least_once, group readings-archiver, ")
    assert "tieout: reading the ledgers\n" in ended.stderr
    assert [line for line in ended.stderr.splitlines() if not line.startswith("tieout: ")] == []


def test_the_output_is_complete_and_as_described(
    reconciled: tuple[subprocess.CompletedProcess[str], Path], truth: dict[str, Any]
) -> None:
    """All four parts, valid by the shipped schema, and the very messages that the recorder knows were lost."""
    output = reconciled[1] / "out"
    statement = json.loads((output / "statement.json").read_text())
    breaks = [json.loads(line) for line in (output / "breaks.jsonl").read_text().splitlines()]
    schema = statement_schema()
    expected = truth["stages"][0]["contracts"]["contract.yml"]

    jsonschema.Draft202012Validator(schema).validate(statement)
    assert breaks
    jsonschema.Draft202012Validator(
        {"type": "array", "items": {"$ref": "#/$defs/break"}, "$defs": schema["$defs"]}
    ).validate(breaks)
    assert statement["classes"] == expected["classes"]
    lost = {found["message_id"] for found in breaks if found["class"] == "LOST"}
    assert len(lost) == expected["classes"]["LOST"]
    assert {path.name for path in output.iterdir()} == {
        "statement.json", "statement.html", "statement.md", "breaks", "breaks.jsonl",
    }  # fmt: skip
    assert "BROKEN: readings_to_archive" in (output / "statement.html").read_text()
    assert (output / "statement.md").read_text().startswith("# BROKEN: `readings_to_archive`\n")
    assert {path.name for path in reconciled[1].iterdir()} == {"out", "out.zip"}


def test_one_message_is_followed_through_the_ledgers(
    example: Path,
    truth: dict[str, Any],
    reconciled: tuple[subprocess.CompletedProcess[str], Path],
    spark: SparkSession,
) -> None:
    """A lost message was sent, is in the log, was committed over, and never came out."""
    line = (reconciled[1] / "out" / "breaks.jsonl").read_text().splitlines()[0]
    message, window = json.loads(line)["message_id"], truth["window"]

    code, out, err = called(
        "trace", example / "contract.yml", message, "--from", window["start"], "--to", window["end"], "--json",
        spark=spark,
    )  # fmt: skip

    assert code == 0, err
    found = json.loads(out)
    jsonschema.Draft202012Validator(trace_schema()).validate(found)
    (reported,) = found["messages"]
    assert {stage["stage"]: stage["state"] for stage in reported["journey"]} == {
        "attempted": "seen", "acknowledged": "seen", "stored": "seen", "read": "not_declared", "written": "missing",
        "committed": "seen",
    }  # fmt: skip
    assert reported["message_id"] == message
    assert reported["journey"][0]["steps"][0]["at"].endswith("Z")
    assert (reported["judgement"]["class"], reported["judgement"]["breaks"][0]["cause"]) == (
        "LOST",
        "commit before process",
    )


def test_a_wrong_column_is_exit_code_2_and_leaves_the_output_alone(
    example: Path, truth: dict[str, Any], tmp_path: Path
) -> None:
    """No statement is better than a wrong one; what an earlier run wrote stays."""
    text = (example / "contract.yml").read_text()
    wrong = example / "wrong.yml"
    wrong.write_text(text.replace("  delivered:\n", "  delivered:\n    where: nowhere = 1\n", 1))
    output = tmp_path / "out"
    output.mkdir()
    (output / "statement.json").write_text("earlier")
    window = truth["window"]

    ended = tieout(
        "reconcile", wrong, "--from", window["start"], "--to", window["end"], "--output", output, cwd=tmp_path
    )

    assert (ended.returncode, ended.stdout) == (2, "")
    assert "nowhere" in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr
    assert [(path.name, path.read_text()) for path in output.iterdir()] == [("statement.json", "earlier")]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_bundle_of_the_run_is_verified_and_a_changed_one_is_not_the_same(
    example: Path,
    reconciled: tuple[subprocess.CompletedProcess[str], Path],
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    """`reconcile --bundle` keeps what the run judged; `verify` finds its breaks again, and names what was changed."""
    ended, folder = reconciled
    digest = ended.stderr.rpartition("digest ")[2].split()[0]

    verified = tieout("verify", "out.zip", "--digest", digest, "--json", cwd=folder)
    found = json.loads(verified.stdout)
    assert (verified.returncode, found["differences"]) == (0, []), verified.stderr
    assert {"name": "break", "compared": 33, "same": 33} in found["compared"]
    assert (
        found["manifest"]["run_id"] == json.loads((folder / "out" / "statement.json").read_text())["run_id"]
    )
    assert found["manifest"]["rows"]["evidence_produced"] == 2000

    given = {
        json.loads(line)["payload_hash"]
        for line in (example / "evidence" / "log.jsonl").read_text().splitlines()
    }
    with (
        zipfile.ZipFile(folder / "out.zip") as packed,
        zipfile.ZipFile(tmp_path / "changed.zip", "w") as written,
    ):
        rows = pq.read_table(io.BytesIO(packed.read("evidence/evidence_log.parquet")))
        kept = set(rows["payload_hash"].to_pylist())
        for name in packed.namelist():
            data = packed.read(name)
            written.writestr(
                name, data.replace(b'"LOST": 33', b'"LOST": 32') if name == "statement.json" else data
            )
    assert len(kept) == len(given)
    assert not kept & given

    code, out, _ = called("verify", tmp_path / "changed.zip", spark=spark)
    assert code == 1
    assert "differs: statement.json: changed" in out
    assert "differs: class LOST: stated 32, found 33" in out
    assert called("verify", tmp_path / "nothing.zip", spark=spark)[0] == 2


def test_a_bundle_that_would_be_too_large_is_not_written(
    example: Path, truth: dict[str, Any], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size is told before anything is written, and the error says what to raise."""
    monkeypatch.chdir(tmp_path)
    window = truth["window"]

    code, _, err = called(
        "bundle", example / "contract.yml", "--from", window["start"], "--to", window["end"], "--output", "out.zip",
        "--max-mb", "1", spark=spark,
    )  # fmt: skip

    assert code == 2
    assert (
        "tieout: the bundle would hold 6055 rows of evidence in 4 tables, 1.2 megabytes uncompressed" in err
    )
    assert "raise --max-mb" in err
    assert list(tmp_path.iterdir()) == []

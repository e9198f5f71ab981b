"""The first statement of docs/tutorial/first-statement.md: its commands do what the page shows."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tieout.cli import spark as command_engine
from tieout.cli.main import main

PAGE = Path(__file__).parents[2] / "docs/tutorial/first-statement.md"
_BLOCKS = re.compile(
    r"^```sh\n(?P<commands>.*?)^```\n(?:(?:[^`]|`[^`])*?\n```\n(?P<shown>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)


def blocks() -> Iterator[tuple[str, str]]:
    """Yield the page's commands after the installation, each with the output that it shows for them."""
    for found in _BLOCKS.finditer(PAGE.read_text()):
        if not found["commands"].startswith("make install"):
            yield found["commands"], found["shown"] or ""


def run(commands: str, folder: Path) -> str:
    """Run a block in the folder, `tieout` in this process and all else in a shell; return what `tieout` printed."""
    out = io.StringIO()
    shell = [line for line in commands.splitlines(keepends=True) if not line.startswith("tieout ")]
    subprocess.run(["bash", "-e"], input="".join(shell), text=True, check=True, cwd=folder)
    for line in commands.splitlines():
        if line.startswith("tieout "):
            main(shlex.split(line)[1:], out=out, err=io.StringIO())
    return out.getvalue()


def test_the_tutorial_prints_what_it_shows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every block of the page in its order; what follows it is the beginning of what it prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command_engine, "_session", lambda _contract, _progress: nullcontext(spark))

    shown = [(expected, run(commands, tmp_path)) for commands, expected in blocks()]

    assert sum(bool(expected) for expected, _ in shown) == 4
    for expected, printed in shown:
        assert printed.startswith(expected.rstrip("\n"))

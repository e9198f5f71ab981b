"""What the command line tells of itself: examples, the manual, completion, and steps that take long."""

from __future__ import annotations

import io
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from tieout.cli.commands import COMMANDS
from tieout.cli.completion import bash_completion
from tieout.cli.examples import EXAMPLES, EXITS
from tieout.cli.manual import commands_of, manual
from tieout.cli.parser import parser
from tieout.cli.progress import Steps

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"


def test_the_page_is_what_the_parser_says() -> None:
    """Written anew by `python -m tieout.cli.manual > docs/reference/cli.md`."""
    assert PAGE.read_text() == manual(parser())


def test_every_command_is_carried_out_and_explained() -> None:
    """Parser, commands, examples and exit codes know the same names, and every option says what it is for."""
    commands = commands_of(parser())

    assert set(commands) == set(COMMANDS) == set(EXAMPLES) == set(EXITS)
    for name, command in commands.items():
        assert EXAMPLES[name] in command.format_help()
        assert f"exit codes: {EXITS[name]}" in command.format_help()
        assert all(action.help for action in command._actions)


def test_every_example_is_understood() -> None:
    """An example that its own parser refuses would teach mistakes."""
    for name, example in EXAMPLES.items():
        words = shlex.split(example)
        if words[0] == "tieout":
            assert parser().parse_args(words[1:]).command == name


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["tra"], ["trace"]),
        (["trace", "--k"], ["--key"]),
        (["reconcile", "c.yml", "--format", ""], ["text", "json", "markdown"]),
        (["report", "--format", "h"], ["html"]),
        (["schema", "st"], ["statement"]),
        (["reconcile", "--nothing-such"], []),
    ],
)
def test_bash_completes_commands_options_and_choices(words: list[str], completed: list[str]) -> None:
    """In a real bash; what is completed as a file is left to it."""
    line = " ".join(shlex.quote(word) for word in ["tieout", *words])
    script = (
        f"{bash_completion(parser())}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}; _tieout\n"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )

    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)

    assert (ended.stdout.split(), ended.stderr) == (completed, "")


def test_a_long_step_is_printed_again() -> None:
    """With its seconds, until the next one begins; nothing runs on when the command is over."""
    err = io.StringIO()

    with Steps(err, reminder_seconds=0.05) as steps:
        steps("matching")
        deadline = time.monotonic() + 30
        while "still matching (0 s)" not in err.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
        steps("adding up")
    reported = err.getvalue()
    time.sleep(0.15)

    assert reported.startswith("tieout: matching\ntieout: still matching (0 s)\n")
    assert reported.count("tieout: adding up\n") == 1
    assert err.getvalue() == reported

"""The page docs/reference/cli.md, written from the parser: `python -m tieout.cli.manual > docs/reference/cli.md`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping

from tieout.cli.examples import EXAMPLES, EXITS

_HEAD = """\
# The command line

Written from the commands' own help by `python -m tieout.cli.manual`; do not edit. What the commands write, and what
the exit codes mean: [contract, command line, output](contract.md#the-command-line).

Results go to standard output, or to the file or folder that is named; steps and errors go to standard error. A step
that takes longer is told again every ten seconds. `tieout --version` prints the version.
"""


def manual(parser: argparse.ArgumentParser) -> str:
    """Return the page: every command with its purpose, arguments, options, an example and its exit codes."""
    sections = [_section(name, command) for name, command in commands_of(parser).items()]
    return "\n".join([_HEAD, *sections])


def commands_of(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """Return the parsers of the commands by their names."""
    commands: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            commands |= action.choices
    return commands


def _section(name: str, command: argparse.ArgumentParser) -> str:
    lines = [f"## `tieout {name}`", "", command.description or "", ""]
    if name in EXAMPLES:
        lines += ["```sh", EXAMPLES[name], "```", ""]
    lines += ["| | |", "|---|---|", *_rows(command), ""]
    if name in EXITS:
        lines += [f"Exit: {EXITS[name]}.", ""]
    return "\n".join(lines)


def _rows(command: argparse.ArgumentParser) -> Iterator[str]:
    for action in command._actions:
        if not isinstance(action, argparse._HelpAction):
            about = (action.help or "") % {"default": action.default}
            needed = "" if action.option_strings and not action.required else _needed(action)
            yield f"| `{_written(action)}` | {_cell(about)}{needed} |"


def _needed(action: argparse.Action) -> str:
    return "" if action.nargs == "?" else "; required" if action.option_strings else ""


def _written(action: argparse.Action) -> str:
    """Return an argument as it is typed: its option and its value."""
    values = "\\|".join(map(str, action.choices or ()))
    value = "" if action.nargs == 0 else values or str(action.metavar or action.dest.upper())
    repeated = f"{value}…" if action.nargs == "+" else f"[{value}]" if action.nargs == "?" else value
    return " ".join(part for part in (", ".join(action.option_strings), repeated) if part)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    from tieout.cli.parser import parser as whole

    sys.stdout.write(manual(whole()))

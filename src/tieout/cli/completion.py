"""Bash completion, generated from the parser: completing runs no Python.

How bash completes: https://www.gnu.org/software/bash/manual/html_node/Programmable-Completion.html
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping

from tieout.cli.manual import commands_of

_SCRIPT = """\
# bash completion of tieout; written by `tieout completion`
_tieout() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} words=
    case "${{COMP_WORDS[1]}} ${{COMP_WORDS[COMP_CWORD-1]}}" in
{values}
        *) if [ "$COMP_CWORD" -eq 1 ]; then
               words={commands}
           else
               case "${{COMP_WORDS[1]}}" in
{options}
               esac
               case "$word" in -*) ;; *) words= ;; esac
           fi ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _tieout tieout
"""


def bash_completion(parser: argparse.ArgumentParser) -> str:
    """Return a script that completes commands, options and their choices; anything else is completed as a file."""
    commands = commands_of(parser)
    return _SCRIPT.format(
        commands=shlex.quote(" ".join([*commands, "--help", "--version"])),
        values="\n".join(_values(commands)),
        options="\n".join(
            f"                   {name}) words={shlex.quote(' '.join(_options(command)))} ;;"
            for name, command in commands.items()
        ),
    )


def _options(command: argparse.ArgumentParser) -> list[str]:
    return [
        option for action in command._actions for option in action.option_strings if option.startswith("--")
    ]


def _values(commands: Mapping[str, argparse.ArgumentParser]) -> Iterator[str]:
    """Yield a shell case for each option and each positional argument that has a fixed set of choices."""
    for name, command in commands.items():
        for action in command._actions:
            if action.choices is not None:
                words = shlex.quote(" ".join(map(str, action.choices)))
                for preceding_word in action.option_strings or [name]:
                    yield f"        {shlex.quote(f'{name} {preceding_word}')}) words={words} ;;"

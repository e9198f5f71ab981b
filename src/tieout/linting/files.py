"""Reading the settings of others' configuration files, for comparing them; what looks like a secret is left out.

Java properties (also `spark-defaults.conf`), JSON (a connector as Kafka Connect's REST interface has it) and YAML
(Flink's). Errors name file and line and never repeat what stands there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tieout.contracts.document import read_document
from tieout.contracts.secrets import is_secret, is_secret_name
from tieout.errors import ContractError, SettingsFileError

_MAX_BYTES: Final = 1_000_000
_PROPERTY: Final = re.compile(r"((?:\\.|[^\\\s=:])*)(?:\s*[=:]\s*|\s+|$)(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_settings(file: Path) -> dict[str, str]:
    """Return the settings in the file as text, without those that look like secrets; a file may be of any program.

    Raises:
        SettingsFileError: where it cannot be read, is of no known kind, or does not parse.
    """
    readers = {
        ".properties": _properties,
        ".conf": _properties,
        ".json": _json,
        ".yaml": _yaml,
        ".yml": _yaml,
    }
    reader = readers.get(file.suffix)
    if reader is None:
        known = ", ".join(readers)
        raise SettingsFileError(f"{file}: expected a file that ends in one of {known}, found {file.name!r}")
    found = reader(file)
    return {name: value for name, value in found.items() if not is_secret_name(name) and not is_secret(value)}


def _text(file: Path) -> str:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise SettingsFileError(f"{file}: cannot be read: {error.strerror}") from error
    if len(content) > _MAX_BYTES:
        raise SettingsFileError(f"{file}: expected at most {_MAX_BYTES} bytes, found {len(content)}")
    return content.decode("utf-8", errors="replace")


def _properties(file: Path) -> dict[str, str]:
    """Return the entries of Java properties, as `java.util.Properties.load` documents them; the last one counts."""
    entries = {}
    for line in _logical_lines(_text(file)):
        found = _PROPERTY.match(line)
        if found:
            entries[_unescaped(found[1])] = _unescaped(found[2]).strip()
    return entries


def _logical_lines(text: str) -> Iterator[str]:
    r"""Yield lines without comments and blanks; a line that ends in an odd number of backslashes goes on.

    >>> list(_logical_lines("# note\nacks=\\\n  all\n\n! note\nretries 3"))
    ['acks=all', 'retries 3']
    """
    begun = ""
    for line in text.splitlines():
        part = line.lstrip()
        if not begun and (not part or part[0] in "#!"):
            continue
        if (len(part) - len(part.rstrip("\\"))) % 2:
            begun += part[:-1]
            continue
        yield begun + part
        begun = ""
    if begun:
        yield begun


def _unescaped(text: str) -> str:
    def meant(found: re.Match[str]) -> str:
        sign = found[1]
        return chr(int(sign[1:], 16)) if len(sign) > 1 else _ESCAPED.get(sign, sign)

    return _ESCAPE.sub(meant, text)


def _json(file: Path) -> dict[str, str]:
    """Return a connector's configuration: the file's `config`, or the whole file where there is none."""
    try:
        found = json.loads(_text(file))
    except json.JSONDecodeError as error:
        raise SettingsFileError(f"{file}:{error.lineno}: not JSON: {error.msg}") from None
    if not isinstance(found, dict):
        raise SettingsFileError(f"{file}: expected an object of settings, found {type(found).__name__}")
    config = found.get("config", found)
    return _flat(config if isinstance(config, dict) else found)


def _yaml(file: Path) -> dict[str, str]:
    """Return nested keys joined by dots, as Flink's `config.yaml` and `flink-conf.yaml` mean them."""
    try:
        return _flat(read_document(file).value)
    except ContractError as error:
        raise SettingsFileError(
            f"{error.file}{f':{error.line}' if error.line else ''}: no YAML of settings"
        ) from None


def _flat(found: dict[str, Any], above: str = "") -> dict[str, str]:
    entries: dict[str, str] = {}
    for name, value in found.items():
        if isinstance(value, dict):
            entries |= _flat(value, f"{above}{name}.")
        elif isinstance(value, bool):
            entries[above + name] = str(value).lower()
        elif value is not None and not isinstance(value, list):
            entries[above + name] = str(value).strip()
    return entries

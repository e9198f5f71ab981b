"""Formats of one setting per line: Java properties, files of environment variables, Flink's before 2.0."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final

_PROPERTY: Final = re.compile(r"((?:\\.|[^\\\s=:])*)(?:\s*[=:]\s*|\s+|$)(.*)", re.DOTALL)
_SECTION: Final = re.compile(r"\[([^\[\]]+)\]\s*(?:[#;].*)?")
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_DOCUMENT: Final = re.compile(r"^[#!]---[ \t]*$", re.MULTILINE)
_DESCRIBE_OUTPUT: Final = re.compile(r"(.*) sensitive=(?:true|false) synonyms=\{.*\}")
_VARIABLE: Final = re.compile(r"\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(.*)")
_SHELL: Final = re.compile(r"\s*export\s|.*[;&]\s*export\s")
"""A line of a shell's script, not of a file that a container reads: several variables may be set in it."""
_SHELL_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_SHELL_BREAKS: Final = ";&|"
_QUOTED: Final = re.compile(r"""(["'])(.*)\1(?:\s+#.*)?""")


_TEXT: Final = r"'(?:[^']|'')*'"
_SQL_COMMENT: Final = re.compile(rf"(?P<text>{_TEXT})|--[^\n]*|/\*(?!\+)(?:.*?\*/|.*)", re.DOTALL)
_SQL_STATEMENT: Final = re.compile(rf"(?:{_TEXT}|[^;'])+")
_SQL_SET: Final = re.compile(rf"SET\s+({_TEXT}|[\w.-]+)\s*=\s*({_TEXT}|\S+)", re.IGNORECASE)
_SQL_TABLE: Final = re.compile(
    r"CREATE\s+(?:TEMPORARY\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?([\w.`-]+)", re.IGNORECASE
)
_SQL_WITH: Final = re.compile(r"\bWITH\s*\(", re.IGNORECASE)
_SQL_HINT: Final = re.compile(
    rf"(?<![\w.`-])([\w.`-]+)\s*/\*\+\s*OPTIONS\s*\(((?:{_TEXT}|[^')*;])*)\)\s*\*/", re.IGNORECASE
)
_SQL_OPTION: Final = re.compile(rf"{_TEXT}|=")

Section = dict[str, "str | Section"]
"""Settings, and sections of further settings."""


def properties(text: str) -> list[Section]:
    r"""Return the entries of Java properties, as `java.util.Properties.load` documents them; the last one counts.

    A key given twice has the position of the last one. Each of Spring's documents, separated by `#---`, is one
    mapping. A name in brackets, which no Java program writes, starts a section: entries after `[a]` hold only in it.

    >>> properties("acks=1\nacks : all\n#---\nretries 3\n[a]\nacks=0")
    [{'acks': 'all'}, {'retries': '3', 'a': {'acks': '0'}}]
    """
    return [_entries(part) for part in _DOCUMENT.split(text)]


def _entries(text: str) -> Section:
    entries: Section = {}
    section = entries
    for line in _logical_lines(text):
        name = _SECTION.fullmatch(line)
        entry = _PROPERTY.match(line)
        if name:
            existing = entries.get(name[1].strip())
            section = existing if isinstance(existing, dict) else {}
            entries[name[1].strip()] = section
        elif entry:
            key = _unescaped(entry[1])
            section.pop(key, None)
            section[key] = _without_describe_suffix(_unescaped(entry[2]).strip())
    return entries


def _without_describe_suffix(value: str) -> str:
    """Return the value without the suffix that `kafka-configs --describe` prints after it.

    >>> _without_describe_suffix("1 sensitive=false synonyms={DEFAULT_CONFIG:min.insync.replicas=1}")
    '1'
    """
    match = _DESCRIBE_OUTPUT.fullmatch(value)
    return match[1] if match else value


def _logical_lines(text: str) -> Iterator[str]:
    r"""Yield lines without comments and blanks; a line that ends in an odd number of backslashes continues.

    >>> list(_logical_lines("# note\nacks=\\\n  all\n\n! note\nretries 3"))
    ['acks=all', 'retries 3']
    """
    continued = ""
    for line in text.splitlines():
        part = line.lstrip()
        if not continued and (not part or part[0] in "#!"):
            continue
        if (len(part) - len(part.rstrip("\\"))) % 2:
            continued += part[:-1]
            continue
        yield continued + part
        continued = ""
    if continued:
        yield continued


def _unescaped(text: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        escape = match[1]
        return chr(int(escape[1:], 16)) if len(escape) > 1 else _ESCAPED.get(escape, escape)

    return _ESCAPE.sub(replaced, text)


def flink_lines(text: str) -> dict[str, str]:
    r"""Return the entries of `flink-conf.yaml` as Flink before 2.0 reads it, which is not as YAML.

    A line is a key, a colon, a blank and a value; `#` starts a comment anywhere; quotes are part of the value; a line
    without such a colon is ignored; the last value of a duplicate key counts.

    >>> flink_lines("a.b: x: y # note\nc:\n  d: 1\na.b: 2")
    {'a.b': '2', 'd': '1'}
    """
    entries = {}
    for line in text.splitlines():
        key, colon, value = line.split("#", 1)[0].strip().partition(": ")
        if colon and key.strip() and value.strip():
            entries[key.strip()] = value.strip()
    return entries


def variables(text: str) -> dict[str, str]:
    r"""Return the environment variables that a file such as `.env` sets, without quotes around values.

    >>> variables("export KAFKA_ACKS='all' RETRIES=3 # note\nB=1 C=2")
    {'KAFKA_ACKS': 'all', 'RETRIES': '3', 'B': '1 C=2'}
    """
    entries: dict[str, str] = {}
    for line in text.splitlines():
        match = None if line.lstrip().startswith("#") else _VARIABLE.fullmatch(line)
        exported = _exported(line) if match and _SHELL.match(line) else None
        if exported:
            entries.update(exported)
        elif match:
            quoted = _QUOTED.fullmatch(match[2].strip())
            entries[match[1]] = quoted[2] if quoted else match[2].split(" #", 1)[0].strip()
    return entries


def _exported(line: str) -> dict[str, str] | None:
    """Return the variables that a line of a shell's script sets, None where its quotes are not closed.

    >>> _exported("export A=1 B='x y'; export C=$D # E=2"), _exported("A=1; export A")
    ({'A': '1', 'B': 'x y', 'C': '$D'}, {'A': '1'})
    """
    words = shlex.shlex(line, posix=True, punctuation_chars=_SHELL_BREAKS)
    words.whitespace_split, words.commenters = True, ""
    found: dict[str, str] = {}
    try:
        for word in words:
            if word.startswith("#"):
                break
            name, equals, value = word.partition("=")
            if equals and _SHELL_NAME.fullmatch(name):
                found[name] = value
    except ValueError:
        return None
    return found


def sql_settings(text: str) -> Section:
    r"""Return the settings of a Flink SQL script, and below `tables` the options of each Kafka table.

    A table's hints override its own options.

    >>> sql_settings("SET 'a.b' = '1'; -- note\nCREATE TABLE t (id INT) WITH ('connector' = 'kafka', 'topic' = 'x');")
    {'a.b': '1', 'tables': {'t': {'connector': 'kafka', 'topic': 'x'}}}
    """
    settings: Section = {}
    tables: dict[str, dict[str, str]] = {}
    for match in _SQL_STATEMENT.finditer(_SQL_COMMENT.sub(lambda piece: piece["text"] or " ", text)):
        statement = match[0].strip()
        assignment, table = _SQL_SET.fullmatch(statement), _SQL_TABLE.match(statement)
        if assignment:
            settings[_of_sql(assignment[1])] = _of_sql(assignment[2])
        own_options = [(table[1], _SQL_WITH.split(statement)[-1])] if table else []
        for name, options in own_options or _SQL_HINT.findall(statement):
            tables.setdefault(name.replace("`", ""), {}).update(_options(options))
    kafka_tables = {
        name: table_options
        for name, table_options in tables.items()
        if "kafka" in table_options.get("connector", "")
    }
    return (
        {**settings, "tables": {name: {**table_options} for name, table_options in kafka_tables.items()}}
        if kafka_tables
        else settings
    )


def _options(text: str) -> Iterator[tuple[str, str]]:
    symbols = _SQL_OPTION.findall(text)
    for index, symbol in enumerate(symbols[1:-1], 1):
        if symbol == "=" != symbols[index - 1] and symbols[index + 1] != "=":
            yield _of_sql(symbols[index - 1]), _of_sql(symbols[index + 1])


def _of_sql(text: str) -> str:
    return text[1:-1].replace("''", "'").strip() if text.startswith("'") else text

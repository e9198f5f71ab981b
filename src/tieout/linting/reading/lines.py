"""Formats of one setting per line: Java properties, files of environment variables, Flink's before 2.0."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_PROPERTY: Final = re.compile(r"((?:\\.|[^\\\s=:])*)(?:\s*[=:]\s*|\s+|$)(.*)", re.DOTALL)
_SECTION: Final = re.compile(r"\[([^\[\]]+)\]\s*(?:[#;].*)?")
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_DOCUMENT: Final = re.compile(r"^[#!]---[ \t]*$", re.MULTILINE)
_DESCRIBED: Final = re.compile(r"(.*) sensitive=(?:true|false) synonyms=\{.*\}")
_VARIABLE: Final = re.compile(r"\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(.*)")
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
"""Settings, and those of the sections among them."""


def properties(text: str) -> list[Section]:
    r"""Return the entries of Java properties, as `java.util.Properties.load` documents them; the last one counts.

    What is given twice has the place of the last one. Several documents in one file, parted by `#---` as Spring has
    them, are one mapping each. So is what stands below a name in brackets, which no Java program writes: what comes
    after `[a]` holds in that section alone.

    >>> properties("acks=1\nacks : all\n#---\nretries 3\n[a]\nacks=0")
    [{'acks': 'all'}, {'retries': '3', 'a': {'acks': '0'}}]
    """
    return [_entries(part) for part in _DOCUMENT.split(text)]


def _entries(text: str) -> Section:
    entries: Section = {}
    section = entries
    for line in _logical_lines(text):
        name = _SECTION.fullmatch(line)
        found = _PROPERTY.match(line)
        if name:
            held = entries.get(name[1].strip())
            section = held if isinstance(held, dict) else {}
            entries[name[1].strip()] = section
        elif found:
            key = _unescaped(found[1])
            section.pop(key, None)
            section[key] = _undescribed(_unescaped(found[2]).strip())
    return entries


def _undescribed(value: str) -> str:
    """Return the value without what `kafka-configs --describe` prints behind it.

    >>> _undescribed("1 sensitive=false synonyms={DEFAULT_CONFIG:min.insync.replicas=1}")
    '1'
    """
    found = _DESCRIBED.fullmatch(value)
    return found[1] if found else value


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


def flink_lines(text: str) -> dict[str, str]:
    r"""Return the entries of `flink-conf.yaml` as Flink before 2.0 reads it, which is not as YAML.

    A line is a key, a colon, a blank and a value; `#` begins a comment wherever it stands; quotes are part of the
    value; a line without such a colon is passed over; of a key given twice the last counts.

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
    r"""Return the environment variables that a file such as `.env` sets; quotes around a value are none of it.

    >>> variables("export KAFKA_ACKS='all' # note\nB=1")
    {'KAFKA_ACKS': 'all', 'B': '1'}
    """
    entries = {}
    for line in text.splitlines():
        found = None if line.lstrip().startswith("#") else _VARIABLE.fullmatch(line)
        if found:
            quoted = _QUOTED.fullmatch(found[2].strip())
            entries[found[1]] = quoted[2] if quoted else found[2].split(" #", 1)[0].strip()
    return entries


def sql_settings(text: str) -> Section:
    r"""Return what a script of Flink SQL sets, and below `tables` the options of each table that is one of Kafka's.

    A hint at a table counts before its own options.

    >>> sql_settings("SET 'a.b' = '1'; -- note\nCREATE TABLE t (id INT) WITH ('connector' = 'kafka', 'topic' = 'x');")
    {'a.b': '1', 'tables': {'t': {'connector': 'kafka', 'topic': 'x'}}}
    """
    settings: Section = {}
    tables: dict[str, dict[str, str]] = {}
    for found in _SQL_STATEMENT.finditer(_SQL_COMMENT.sub(lambda one: one["text"] or " ", text)):
        statement = found[0].strip()
        said, table = _SQL_SET.fullmatch(statement), _SQL_TABLE.match(statement)
        if said:
            settings[_of_sql(said[1])] = _of_sql(said[2])
        own = [(table[1], _SQL_WITH.split(statement)[-1])] if table else []
        for name, options in own or _SQL_HINT.findall(statement):
            tables.setdefault(name.replace("`", ""), {}).update(_options(options))
    kept = {name: held for name, held in tables.items() if "kafka" in held.get("connector", "")}
    return {**settings, "tables": {name: {**held} for name, held in kept.items()}} if kept else settings


def _options(text: str) -> Iterator[tuple[str, str]]:
    words = _SQL_OPTION.findall(text)
    for at, word in enumerate(words[1:-1], 1):
        if word == "=" != words[at - 1] and words[at + 1] != "=":
            yield _of_sql(words[at - 1]), _of_sql(words[at + 1])


def _of_sql(text: str) -> str:
    return text[1:-1].replace("''", "'").strip() if text.startswith("'") else text

"""Templates of settings files: placeholders are quoted, so that the rest can be parsed."""

from __future__ import annotations

import re
from typing import Final

_DIRECTIVE: Final = re.compile(r"\s*(?:\{\{.*\}\}|\{%.*%\}|\{#.*#\}|<%.*%>)\s*")
_ENTRY: Final = re.compile(
    r"""(?P<key>\s*(?:-\s+)*(?:"[^"]*"|'[^']*'|[^\s"'\#:][^:]*?)\s*:[ \t]+|\s*(?:-\s+)+)(?P<value>\S.*)"""
)
_PLACEHOLDER_START: Final = re.compile(r"\{\{|\{%|@|%|\#\{|<%|\[\[|`|\{[A-Za-z_][\w.]*\}")
"""Starts of placeholders that YAML does not parse as text."""

_PLACEHOLDER: Final = (
    r"\{\{.*?\}\}|\{%.*%\}|\#\{.*?\}\#?|<%.*?%>|\[\[.*?\]\]"
    r"|@[^@\s]+@|%\(\w+\)[sd]|%\{[^}]*\}|%\w+%|\{[A-Za-z_][\w.]*\}"
)
_FILLED_IN: Final = re.compile(rf"(?P<value>(?:{_PLACEHOLDER})\S*)(?:\s+\#.*)?")
_IN_JSON: Final = re.compile(
    rf"(?P<before>:\s*)(?P<value>{_PLACEHOLDER}|\$\{{[^}}]*\}}|\$\([^)]*\)|<[^<>\"]+>|\$\w+|__\w+__)(?=\s*(?:[,}}\]\n]|$))"
)
_COMMENT: Final = re.compile(r"^\s*//.*$", re.MULTILINE)
_TEXT: Final = r'(?P<text>"(?:\\.|[^"\\\n])*")'
_ANY_COMMENT: Final = re.compile(rf"{_TEXT}|//[^\n]*|/\*(?:.*?\*/|.*)", re.DOTALL)
_LAST_COMMA: Final = re.compile(rf"{_TEXT}|,(?=\s*[}}\]])")


def yaml_of(text: str) -> tuple[str, bool]:
    r"""Return the text with placeholders quoted and directive lines emptied, and whether it has such lines.

    Line numbers are kept.

    >>> yaml_of("{{- if .x }}\nacks: {{ .Values.acks }} # note\nb: @b@\nc: #{c}#")
    ("\nacks: '{{ .Values.acks }}'\nb: '@b@'\nc: '#{c}#'", True)
    """
    lines, has_directives = [], False
    for line in text.splitlines():
        if _DIRECTIVE.fullmatch(line):
            has_directives = True
            lines.append("")
        else:
            lines.append(_quoted(line))
    return "\n".join(lines), has_directives


def _quoted(line: str) -> str:
    entry = _ENTRY.fullmatch(line)
    if entry is None or not _PLACEHOLDER_START.match(entry["value"]):
        return line
    filled = _FILLED_IN.fullmatch(entry["value"].rstrip())
    if filled is None:
        return line
    value = filled["value"].replace("'", "''")
    return f"{entry['key']}'{value}'"


def json_of(text: str) -> str:
    """Return the text with placeholders quoted and comment lines removed, which JSON does not allow.

    >>> json_of('{"tasks.max": ${TASKS}, "acks": {{ acks }}}')
    '{"tasks.max": "${TASKS}", "acks": "{{ acks }}"}'
    """

    def quoted(match: re.Match[str]) -> str:
        value = match["value"].replace("\\", "\\\\").replace('"', '\\"')
        return f'{match["before"]}"{value}"'

    return _IN_JSON.sub(quoted, _COMMENT.sub("", text))


def strict_json_of(text: str) -> str:
    """Return the text without comments and trailing commas, as .NET and others read JSON.

    >>> strict_json_of('{"a": "//b",} // c')
    '{"a": "//b"} '
    """
    for pattern in (_ANY_COMMENT, _LAST_COMMA):
        text = pattern.sub(lambda match: match["text"] or "", text)
    return text

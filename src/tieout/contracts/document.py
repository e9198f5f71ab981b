"""Reads a YAML file into plain values and records their line numbers.

Scalars follow YAML 1.2's core schema, not 1.1: `on`, `yes`, `10:30` and dates are text.
Keys are always text. A duplicate key is an error; the usual loaders silently keep the last value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from tieout.errors import ContractError
from tieout.regular_files import opened_file

_MAX_BYTES: Final = 1_000_000
_MAX_NODES: Final = 20_000
_MAX_DEPTH: Final = 32
_LONGEST_REASON: Final = 600
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_NO_BREAK_SPACE: Final = "\u00a0"
_CORE_TAGS: Final = {
    "tag:yaml.org,2002:null": re.compile(r"^(?:~|null|Null|NULL|)$"),
    "tag:yaml.org,2002:bool": re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"),
    "tag:yaml.org,2002:int": re.compile(r"^[-+]?[0-9]+$"),
    "tag:yaml.org,2002:float": re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$"),
}
_SUPPORTED_TAGS: Final = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("str", "map", "seq"))

_ADVICE: Final = {
    "expected <block end>": "the line is not indented as those beside it are",
    "expected ',' or ": "a bracket is not closed, or what stands within it needs quotes",
    "mapping values are not allowed here": "a value with a colon and a space needs quotes",
    "found character '\\t'": "the line is indented by a tab; YAML takes spaces",
    "found character": "a value that begins with it needs quotes",
    "could not find expected ':'": "a field is followed by a colon and a space",
    "expected alphabetic or numeric character": "a value that begins with * or & needs quotes",
    "found undefined alias": "a value that begins with * needs quotes",
    "found unknown escape character": "in double quotes a backslash begins an escape, in single ones it does not",
    "but found another document": "a file holds one contract",
}
"""Beginnings of PyYAML's messages, with advice for each."""

FieldPath = tuple[str | int, ...]


class _CoreLoader(yaml.SafeLoader):
    """PyYAML's parser with the scalars of YAML 1.2's core schema."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own name


for _tag, _pattern in _CORE_TAGS.items():
    _CoreLoader.add_implicit_resolver(_tag, _pattern, None)


@dataclass(frozen=True)
class Document:
    """Values of JSON types, and the line of each."""

    value: dict[str, object]
    lines: dict[FieldPath, int]

    def line_of(self, path: FieldPath) -> int | None:
        """Return the line of the value at the path, or of the closest value that contains it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)


def read_document(path: Path) -> Document:
    """Return the mapping in the YAML file.

    Raises:
        ContractError: if the file cannot be read, is not UTF-8 or not YAML, or does not hold one mapping.
    """
    file = str(path)
    text = _read_text(path)
    try:
        node = yaml.compose(text, Loader=_CoreLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = shortened(f"not YAML: {error.problem}{_advice(error.problem or '')}{_no_break_space(text)}")
        raise ContractError(file, mark.line + 1 if mark else None, reason) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ContractError(file, line, f"not YAML: {error.reason}") from error
    except RecursionError as error:
        raise ContractError(file, None, "nested too deeply to be a contract") from error
    if node is None or (isinstance(node, yaml.ScalarNode) and node.value == ""):
        raise ContractError(file, None, "the file is empty; expected a contract that begins with version: 1")
    if not isinstance(node, yaml.MappingNode):
        raise ContractError(
            file, node.start_mark.line + 1, f"expected a mapping of fields, found {_kind(node)}"
        )
    return _Reading(file).document(node)


def _advice(problem: str) -> str:
    return next((f"; {advice}" for begins, advice in _ADVICE.items() if problem.startswith(begins)), "")


def _no_break_space(text: str) -> str:
    """Return a remark on the first no-break space of invalid YAML, as in text copied from a web page."""
    before, separator, _ = text.partition(_NO_BREAK_SPACE)
    line = before.count("\n") + 1
    return f"; line {line} has a no-break space, which YAML takes for a letter" if separator else ""


def _read_text(path: Path) -> str:
    if path.is_dir():
        raise ContractError(str(path), None, "expected a contract file, found a folder")
    try:
        with opened_file(path) as stream:
            content = stream.read(_MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise ContractError(str(path), None, "no such file") from error
    except OSError as error:
        raise ContractError(str(path), None, f"cannot be read: {error.strerror}") from error
    if len(content) > _MAX_BYTES:
        raise ContractError(str(path), None, f"expected a contract of at most {_MAX_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ContractError(str(path), line, f"not UTF-8: byte 0x{content[error.start]:02x}") from error


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.CollectionNode):
        return "a mapping" if isinstance(node, yaml.MappingNode) else "a list"
    return "a single value"


class _Reading:
    """Converts one file's nodes, records their lines and limits their number and depth."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[FieldPath, int] = {}
        self.open_nodes: set[int] = set()

    def document(self, node: yaml.MappingNode) -> Document:
        """Return the document under the root node."""
        value = dict(self.items(node, ()))
        return Document(value, self.lines)

    def value(self, node: yaml.Node, path: FieldPath, line: int) -> object:
        """Return the plain value of a node, and record the line of its key, or of the node itself."""
        self.lines[path] = line
        if len(self.lines) > _MAX_NODES:
            raise self.error(node, f"expected at most {_MAX_NODES} values; aliases may have multiplied them")
        if len(path) > _MAX_DEPTH:
            raise self.error(node, f"expected at most {_MAX_DEPTH} levels; aliases may have nested them")
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node)
        if node.tag not in _SUPPORTED_TAGS:
            raise self.error(node, f"the tag {node.tag} is not supported")
        if id(node) in self.open_nodes:
            raise self.error(node, "the value contains itself through an alias")
        self.open_nodes.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return dict(self.items(node, path))
            return [
                self.value(child, (*path, index), child.start_mark.line + 1)
                for index, child in enumerate(node.value)
            ]
        finally:
            self.open_nodes.discard(id(node))

    def items(self, node: yaml.MappingNode, path: FieldPath) -> Iterator[tuple[str, object]]:
        """Yield the keys and values of a mapping; a duplicate key is an error."""
        first_lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self.error(key_node, f"expected a field's name, found {_kind(key_node)}")
            key, line = self.text(key_node), key_node.start_mark.line + 1
            field = ".".join(map(str, (*path, key)))
            if key in first_lines:
                raise self.error(key_node, f"{field}: given a second time, first on line {first_lines[key]}")
            first_lines[key] = line
            yield key, self.value(value_node, (*path, key), line)

    def scalar(self, node: yaml.ScalarNode) -> object:
        """Return the value of a scalar; it is text if it has no other type."""
        kind = node.tag.removeprefix("tag:yaml.org,2002:")
        text = self.text(node)
        if kind == "str":
            return text
        pattern = _CORE_TAGS.get(node.tag)
        if pattern is None or not pattern.match(text):
            raise self.error(node, f"the tag {node.tag} is not supported here")
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        return _number(text, is_whole=kind == "int")

    def text(self, node: yaml.ScalarNode) -> str:
        """Return a scalar's text; a control character is an error, as databases and terminals mishandle it."""
        text = str(node.value)
        control = _CONTROL.search(text)
        if control:
            raise self.error(node, f"the character U+{ord(control.group()):04X} is not allowed")
        return text

    def error(self, node: yaml.Node, reason: str) -> ContractError:
        """Return an error at the node's line."""
        return ContractError(self.file, node.start_mark.line + 1, shortened(reason))


def shortened(text: str, limit: int = _LONGEST_REASON) -> str:
    r"""Return an error's text as one printable line of at most `limit` characters.

    >>> shortened("abcdef", 3), shortened("a\x1b[31m")
    ('abc…', 'a<1b>[31m')
    """
    visible = "".join(
        character if character.isprintable() else f"<{ord(character):x}>" for character in text[:limit]
    )
    return visible if len(text) <= limit else f"{visible}…"


def _number(text: str, *, is_whole: bool) -> int | float | str:
    """Return the number, or the text itself if it is out of range."""
    try:
        number = int(text) if is_whole else float(text)
        is_number = math.isfinite(number)
    except (ValueError, OverflowError):
        return text
    return number if is_number else text

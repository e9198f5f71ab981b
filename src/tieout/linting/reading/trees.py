"""Parses YAML and JSON into trees of text: several documents, aliases, merge keys, and templates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import yaml

from tieout.errors import SettingsFileError
from tieout.linting.reading.templates import json_of, strict_json_of, yaml_of

_MAX_NODES: Final = 20_000
_TAG: Final = "tag:yaml.org,2002:"
_BOOLEANS: Final = {
    "true": "true",
    "yes": "true",
    "on": "true",
    "false": "false",
    "no": "false",
    "off": "false",
}
_SEVERAL_VALUES: Final = "{{ one of several }}"

Tree = dict[str, Any] | list[Any]
"""The content of a document: mappings and lists of text."""


def yaml_trees(file: str, text: str) -> tuple[list[Tree], bool]:
    """Return the file's documents that are not empty, and whether template directives were skipped.

    Raises:
        SettingsFileError: if the text is not YAML, or has a duplicate key.
    """
    prepared, is_template = yaml_of(text)
    try:
        nodes = [node for node in yaml.compose_all(prepared, Loader=yaml.SafeLoader) if node is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise SettingsFileError(f"{file}{line}: no YAML of settings") from None
    except (yaml.YAMLError, RecursionError):
        raise SettingsFileError(f"{file}: no YAML of settings") from None
    converter = _Converter(file, is_template=is_template)
    trees = [converter.converted(node) for node in nodes]
    return [tree for tree in trees if isinstance(tree, dict | list) and tree], is_template


class _Converter:
    """Converts one file's nodes to text, mappings and lists, up to a number of nodes."""

    def __init__(self, file: str, *, is_template: bool) -> None:
        self.file = file
        self.is_template = is_template
        self.count = 0
        self.above: set[int] = set()

    def converted(self, node: yaml.Node) -> Any:
        """Return the node as text, mapping or list; None for null."""
        self.count += 1
        if self.count > _MAX_NODES or id(node) in self.above:
            raise SettingsFileError(f"{self.file}: expected at most {_MAX_NODES} values, and none in itself")
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        self.above.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node)
            return [self.converted(child) for child in node.value]
        finally:
            self.above.discard(id(node))

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == f"{_TAG}merge":
                for each in self._merged(value_node):
                    merged = {**each, **merged}
                continue
            key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else ""
            value = self.converted(value_node)
            if key in entries and not self.is_template:
                line = key_node.start_mark.line + 1
                raise SettingsFileError(
                    f"{self.file}:{line}: no YAML of settings: a key is given a second time"
                )
            entries[key] = value if entries.get(key, value) == value else _SEVERAL_VALUES
        return {**merged, **entries}

    def _merged(self, node: yaml.Node) -> Iterator[dict[str, Any]]:
        value = self.converted(node)
        yield from (
            each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)
        )


def _scalar(node: yaml.ScalarNode) -> str | None:
    if node.tag == f"{_TAG}null":
        return None
    text = str(node.value).strip()
    if node.tag == f"{_TAG}bool":
        return _BOOLEANS.get(text.lower(), text)
    return text if node.tag.startswith(_TAG) else f"{node.tag} {text}"


def json_trees(file: str, text: str) -> list[Tree]:
    """Return the file's document, if it is not empty.

    Raises:
        SettingsFileError: if the text is not JSON, or neither an object nor a list.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        value = _template_of_json(file, text, error)
    except RecursionError:
        raise SettingsFileError(f"{file}: nested too deeply for settings") from None
    if not isinstance(value, dict | list):
        raise SettingsFileError(
            f"{file}: expected an object of settings, or a list of them, found {type(value).__name__}"
        )
    tree = _as_text(value)
    return [tree] if tree else []


def _template_of_json(file: str, text: str, error: json.JSONDecodeError) -> Any:
    for prepared in (json_of(text), json_of(strict_json_of(text))):
        try:
            return json.loads(prepared)
        except (json.JSONDecodeError, RecursionError):
            continue
    raise SettingsFileError(f"{file}:{error.lineno}: not JSON: {error.msg}") from None


def _as_text(tree: Any) -> Any:
    """Return the tree with all scalars as text."""
    if isinstance(tree, dict):
        return {str(name): _as_text(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [_as_text(value) for value in tree]
    if tree is None:
        return None
    return str(tree).lower() if isinstance(tree, bool) else str(tree).strip()

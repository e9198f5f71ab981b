"""Flattens one document of a settings file into names and values, each name with its path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from tieout.errors import SettingsFileError
from tieout.linting.reading.lines import flink_lines
from tieout.linting.reading.trees import Tree, json_trees, yaml_trees

_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")
_PULSAR: Final = "PULSAR_PREFIX_"
"""Prefix of variables that are settings in Pulsar's images; the case of the rest is kept."""

_JSON_OF_SPRING: Final = "SPRING_APPLICATION_JSON"
"""Spring's variable with settings as JSON, which override those of other variables."""

_LINES_OF_FLINK: Final = "FLINK_PROPERTIES"
"""The variable that Flink's images write into its configuration."""

_VALUE_FROM: Final = "valueFrom"
"""Kubernetes' key for a variable whose value is in another resource."""

_VARIABLES: Final = ("environment",)
"""Keys below which Docker Compose takes a variable without a value from its own environment."""

_MOST_SEGMENTS: Final = 200
_PAIR: Final = re.compile(r"([A-Za-z_%][\w.%-]*)=(.*)", re.DOTALL)
_BRACKETS: Final = re.compile(r"\[([^\[\]]*[A-Za-z][^\[\]]*)\]")


@dataclass(frozen=True)
class Entry:
    """One value and the segments of its name: from `leaf` on the file's last key, before it the enclosing keys.

    In a file embedded in the file, the name starts at `root`, and `document` is the index of its document.
    """

    segments: tuple[str, ...]
    leaf: int
    value: str
    written: str
    root: int = 0
    document: int = 0


class Documents(list[Tree]):
    """The documents of a file that is embedded as text in another one."""


def key_of(entry: Entry) -> str:
    """Return the name in its file as Spring compares names: in lower case, without dashes and underscores."""
    return ".".join(entry.segments[entry.root :]).lower().replace("-", "").replace("_", "")


def is_variable(entry: Entry) -> bool:
    """Return whether the name is an environment variable's, which overrides all files of an application."""
    return _VARIABLE.fullmatch(entry.written.rsplit(".", 1)[-1]) is not None


def entries_of(tree: Any, above: tuple[str, ...] = (), written: str = "") -> Iterator[Entry]:
    """Yield every text value of the tree.

    Lists of `NAME=value`, or of mappings with `name` and `value`, count as mappings; other lists of mappings are keyed
    by their names, and lists of texts are joined by commas.

    >>> [(entry.written, entry.value) for entry in entries_of({"a": {"b.c": "1"}, "env": ["X_Y=2"]})]
    [('a.b.c', '1'), ('env.X_Y', '2')]
    """
    if isinstance(tree, list):
        tree = _mapping(tree)
    inline: list[tuple[Tree, str]] = []
    for name, value in _filled_in(tree, written):
        path = f"{written}.{name}" if written else name
        segments = segments_of(name)
        json_tree = _inline(name, value)
        if json_tree is not None:
            inline.append((json_tree, path))
        elif isinstance(value, Documents):
            yield from _entries_of_documents(value, (*above, *segments), path)
        elif isinstance(value, list) and value and name not in _VARIABLES and _are_texts(value):
            yield Entry((*above, *segments), len(above), ",".join(value), path)
        elif isinstance(value, dict | list):
            yield from entries_of(value, (*above, *segments), path)
        elif value is not None:
            yield Entry((*above, *segments), len(above), value, path)
    for json_tree, path in inline:
        yield from entries_of(json_tree, above, path)


def _entries_of_documents(documents: Documents, above: tuple[str, ...], written: str) -> Iterator[Entry]:
    for index, document in enumerate(documents):
        for entry in entries_of(document, above, written):
            yield replace(entry, root=len(above), document=index)


def _filled_in(tree: dict[str, Any], written: str) -> Iterator[tuple[str, Any]]:
    """Yield names and values, with a placeholder for a value that is taken from elsewhere.

    >>> list(_filled_in({"A": {"valueFrom": {"secretKeyRef": {}}}, "B": None}, "environment"))
    [('A', '<valueFrom secretKeyRef>'), ('B', '$B')]
    """
    are_variables = written.rsplit(".", 1)[-1] in _VARIABLES
    for name, value in tree.items():
        if isinstance(value, dict) and _VALUE_FROM in value:
            source = value[_VALUE_FROM]
            kind = next(iter(source), "") if isinstance(source, dict) else ""
            yield name, f"<{f'{_VALUE_FROM} {kind}'.strip()}>"
        elif value is None and are_variables and _VARIABLE.fullmatch(name):
            yield name, f"${name}"
        else:
            yield name, value


def _inline(name: str, value: Any) -> Tree | None:
    """Return the settings in a variable's text, which belong to the same place as the variable."""
    if name == _JSON_OF_SPRING:
        return _json_in(value)
    if name != _LINES_OF_FLINK or not isinstance(value, str):
        return None
    try:
        trees, _ = yaml_trees(name, value)
    except SettingsFileError:
        trees = []
    return next((tree for tree in trees if isinstance(tree, dict)), flink_lines(value) or None)


def _json_in(value: Any) -> Tree | None:
    try:
        trees = json_trees(_JSON_OF_SPRING, value) if isinstance(value, str) else []
    except SettingsFileError:
        return None
    return next(iter(trees), None)


def _are_texts(items: list[Any]) -> bool:
    return all(isinstance(item, str) for item in items) and not any(_PAIR.fullmatch(item) for item in items)


def segments_of(name: str) -> tuple[str, ...]:
    """Return the segments of a key: `spring.kafka`, `properties[isolation.level]`, or the variable `SPRING_KAFKA`.

    A name with too many segments is returned whole: each of its suffixes would be looked up.
    """
    if name.count(".") + name.count("_") > _MOST_SEGMENTS:
        return (name,)
    if name.startswith(_PULSAR):
        return (name.removeprefix(_PULSAR),)
    if _VARIABLE.fullmatch(name):
        return tuple(name.lower().split("_"))
    dotted = _BRACKETS.sub(r".\1", name)
    return tuple(segment for segment in dotted.split(".") if segment) or (name,)


def _mapping(items: list[Any]) -> dict[str, Any]:
    pairs = [_PAIR.fullmatch(item) if isinstance(item, str) else None for item in items]
    variables = [item for item in items if isinstance(item, str) and _VARIABLE.fullmatch(item)]
    if any(pairs) or variables:
        unnamed = {f"[{i}]": item for i, item in enumerate(items) if not pairs[i] and item not in variables}
        return {**unnamed, **dict.fromkeys(variables), **{pair[1]: pair[2] for pair in pairs if pair}}
    mapping: dict[str, Any] = {}
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            mapping[f"[{index}]"] = item
        elif isinstance(item.get("name"), str) and "value" in item:
            mapping[item["name"]] = item["value"]
        else:
            name = _name_of(item, index)
            mapping[f"[{index}]" if name in mapping else name] = item
    return mapping


def _name_of(item: dict[str, Any], index: int) -> str:
    names = [item.get("name"), item.get("topic")]
    return next((name for name in names if isinstance(name, str) and name), f"[{index}]")

"""The settings of one part in one file."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from tieout.contracts.secrets import is_secret, is_secret_name
from tieout.errors import SettingsFileError
from tieout.linting.reading.entries import Documents, Entry, entries_of, is_variable, key_of
from tieout.linting.reading.families import family_of
from tieout.linting.reading.kubernetes import is_resource, resources, settings_in
from tieout.linting.reading.lines import flink_lines, properties, sql_settings, variables
from tieout.linting.reading.mentions import mentions, setting_in
from tieout.linting.reading.places import Place, places_of
from tieout.linting.reading.profiles import OF_FILE, selected
from tieout.linting.reading.trees import Tree, json_trees, yaml_trees
from tieout.linting.reading.xml_trees import xml_tree
from tieout.linting.versions import ALL, Versions
from tieout.regular_files import opened_file

_MAX_BYTES: Final = 1_000_000
_FLINK_CONF: Final = "flink-conf.yaml"
_CONFIG: Final = "config.yaml"
_KNOWS_YAML: Final = "1.19"
_KNOWS_NO_LINES: Final = "2.0"
_YAML: Final = (".yaml", ".yml")
_LINES: Final = (".properties", ".conf", ".env")
_ORDERED: Final = (".properties", ".conf")
_KNOWN: Final = (*_LINES, ".json", *_YAML, ".xml", ".sql")
_IMPORT: Final = re.compile(
    r"(^|\.)(spring\.config\.(import|location|additional\.?location)|spring\.cloud\.config\.uri|spring\.application\.json"
    r"|(smallrye|quarkus)\.config\.?locations|micronaut\.config\.files|envfile|envfrom|valuesfrom|valuefiles)(\.|\[|$)"
)
"""Settings that say where more settings come from, without dashes and underscores."""

_COUNTS_BEHIND: Final = re.compile(r"(^|\.)(envfile|envfrom|valuesfrom|valuefiles)(\.|\[|$)")
"""Those of variables and of Helm's values that count where the file itself sets none.

Docs: Compose Specification; Kubernetes, Container; Flux, HelmRelease; Argo CD, Helm.
"""

_JSON: Final = re.compile(r"(^|\.)spring\.application\.json$")

_SEPARATED: Final = re.compile(r"[\n:=]")
_PROPERTIES: Final = re.compile(
    r"(?:[ \t]*(?:[#!].*|[\w.-]+[ \t]*=.*)?(?:\n|$))*[ \t]*[\w.-]+[ \t]*=.*\n.*", re.DOTALL
)
"""Text of several lines, each of them a property, under a key that does not say so."""

_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_TEMPLATE: Final = "is a template: its conditions are not followed, and what they hold is taken to be set"
_BY_LINES: Final = "is read by its lines, as Flink before 2.0 reads it, and not as YAML"
_NOT_YAML: Final = "is no YAML, so it is read by its lines, as Flink before 2.0 reads its configuration"
_PASSED_OVER: Final = (
    f"is not what the program reads: Flink reads {_FLINK_CONF} before 2.0, and {_CONFIG} from 1.19 on"
)


@dataclass(frozen=True)
class Reading:
    """What a file says of one part: the places that set it, and the names of all that it holds.

    `notes` say how it was read, `warnings` that a program does not read such a file. `is_literal` says that quotes, and
    what is behind a value, are part of it. A file that takes settings in from elsewhere is not complete, nor is one
    that gives some of those that rules look at within a text, or where secrets stand: these are `unread`, and so are
    those that what is taken in may override.
    Only some formats say in which order settings are set.
    """

    places: tuple[Place, ...]
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    is_literal: bool = False
    is_complete: bool = True
    unread: frozenset[str] = frozenset()
    is_ordered: bool = False


@dataclass(frozen=True)
class _Parsed:
    trees: Sequence[Tree]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    is_literal: bool = False


@dataclass(frozen=True)
class _Wish:
    section: str
    versions: Versions
    profile: str
    any_style: bool


def read_settings(
    file: Path, section: str, *, versions: Versions = ALL, profile: str = "", any_style: bool = False
) -> Reading:
    """Return what the file says of the part, without what looks like a secret; a file may be of any program.

    `versions` are those of the part's program, `profile` the one that is active in a file that has several. With
    `any_style` a program takes its settings under names that are written otherwise than in the catalogue.

    Raises:
        SettingsFileError: where it cannot be read, is of no known kind, or does not parse.
    """
    kind = ".env" if file.name.startswith(".env.") else file.suffix or file.name
    if kind not in _KNOWN:
        known = ", ".join(_KNOWN)
        raise SettingsFileError(f"{file}: expected a file that ends in one of {known}, found {file.name!r}")
    wish = _Wish(section, versions, profile, any_style)
    parsed = _parsed(str(file), kind, _text(file), wish)
    found, beside, profile = _family(file, list(_documents(parsed.trees, wish)), wish)
    held = [(label, entries) for label, entries in found if entries is not None]
    documents = [(label, [each for each in entries if not _is_secret(each)]) for label, entries in held]
    names = [label for label, entries in found if entries is None]
    names += [e.written for _, entries in documents for e in entries if not e.written.startswith("[")]
    parted = list(_parted(documents, profile))
    places = _with_clusters([place for label, entries in parted for place in _places(label, entries, wish)])
    imports = [e for _, entries in parted for e in entries if _IMPORT.search(key_of(e))]
    overridden = set(_overridden(section, imports, [e for _, entries in documents for e in entries]))
    unread = list(_unread(section, [entry for _, entries in held for entry in entries]))
    counts = " and counts before it" if overridden else ""
    notes = [f"takes in more by {each.written}, which is not read{counts}" for each in imports[:1]]
    notes += [f"{note}, which is not read" for note, _ in unread]
    return Reading(
        tuple(places),
        tuple(names),
        (*parsed.notes, *beside, *notes),
        parsed.warnings,
        parsed.is_literal,
        is_complete=not notes,
        unread=frozenset(setting for _, settings in unread for setting in settings) | overridden,
        is_ordered=kind in _ORDERED,
    )


_Found = list[tuple[str, list[Entry] | None]]


def _family(file: Path, own: _Found, wish: _Wish) -> tuple[_Found, tuple[str, ...], str]:
    """Return the file's documents with those of the files that are read together with it, and which these are.

    Beside them stand the profiles that are active: that of the file too, where it is one's. A file that cannot be read
    gives nothing but its name, as a source of more settings.
    """
    found: _Found = []
    active, names = wish.profile, []
    for member in family_of(file):
        name = member.file.name
        documents, above = own, ""
        if member.file == file:
            active = ",".join(filter(None, (active, member.profile)))
        else:
            names.append(name)
            documents, above = _member(member.file, wish), f"{name}: "
        condition = [Entry((OF_FILE,), 0, member.profile, f"[{OF_FILE}]")] if member.profile else []
        found += [
            (
                label,
                entries and [*condition, *(replace(e, written=_below(above, e.written)) for e in entries)],
            )
            for label, entries in documents
        ]
    note = f"is read together with {', '.join(names)} beside it, as Spring and Quarkus do"
    return found, (note,) if names else (), active


def _below(above: str, written: str) -> str:
    return written if written.startswith("[") else f"{above}{written}"


def _member(file: Path, wish: _Wish) -> _Found:
    try:
        return list(_documents(_parsed(str(file), file.suffix, _text(file), wish).trees, wish))
    except SettingsFileError:
        return [("", [Entry(("spring", "config", "import"), 0, file.name, "spring.config.import")])]


def _overridden(section: str, imports: Sequence[Entry], entries: Sequence[Entry]) -> Iterator[str]:
    """Yield the settings that rules look at and that what is taken in may set to something else.

    It counts before the file that takes it in, and behind variables; JSON in a variable counts before these too. Docs:
    Spring Boot, Externalized Configuration, Importing Additional Data.
    """
    keys = [key for each in imports if not _COUNTS_BEHIND.search(key := key_of(each))]
    by_json = any(_JSON.search(key) for key in keys)
    for entry in entries if keys else ():
        setting = setting_in(section, entry.segments)
        if setting is not None and (by_json or not is_variable(entry)):
            yield setting


def _unread(section: str, entries: Sequence[Entry]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield where settings that rules look at are given without being read, in words, and which these are."""
    for name, given in mentions(section, entries):
        yield f"gives {', '.join(given)} in the text of {name}", given
    for entry in entries:
        setting = setting_in(section, entry.segments)
        if setting is not None and _is_secret(entry):
            yield f"gives {entry.written} where secrets stand", (setting,)


def _is_secret(entry: Entry) -> bool:
    return is_secret_name(entry.written) or is_secret(entry.value)


def _text(file: Path) -> str:
    try:
        with opened_file(file) as stream:
            content = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise SettingsFileError(f"{file}: cannot be read: {error.strerror}") from error
    if len(content) > _MAX_BYTES:
        raise SettingsFileError(f"{file}: expected at most {_MAX_BYTES} bytes, found more")
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if content.startswith(mark)), "utf-8")
    return content.decode(encoding, errors="replace")


def _parsed(file: str, kind: str, text: str, wish: _Wish) -> _Parsed:
    """Return the documents in the text, and what is to be said of how they were read."""
    if kind in _ORDERED:
        _refuse_braces(file, kind, text)
        return _Parsed(properties(text), is_literal=True)
    if kind == ".env":
        return _Parsed([variables(text)])
    if kind == ".json":
        return _Parsed(json_trees(file, text))
    if kind == ".xml":
        return _Parsed([xml_tree(file, text)])
    if kind == ".sql":
        return _Parsed([sql_settings(text)])
    return _flink(file, text, wish.versions) if wish.section == "flink" else _yaml(file, text)


def _yaml(file: str, text: str) -> _Parsed:
    trees, is_template = yaml_trees(file, text)
    return _Parsed(trees, (_TEMPLATE,) if is_template else ())


def _refuse_braces(file: str, kind: str, text: str) -> None:
    """Refuse a `.conf` of nested braces, which would be taken for settings without what is around them.

    Raises:
        SettingsFileError: where a line opens one.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if kind == ".conf" and line.split("#")[0].rstrip().endswith("{") and "${" not in line:
            raise SettingsFileError(
                f"{file}:{number}: expected a setting on each line, found a brace: HOCON is not read; "
                "name a .properties or .json file of the same settings"
            )


def _flink(file: str, text: str, versions: Versions) -> _Parsed:
    """Return a configuration of Flink: lines in its older file, or in any before it knew YAML; else YAML.

    What wraps the configuration, such as a resource, is YAML in any case.
    """
    name, is_before_yaml = Path(file).name, not versions.overlap(_KNOWS_YAML, "")
    lines = [flink_lines(text)]
    if name == _FLINK_CONF:
        warnings = (_PASSED_OVER,) if versions.within(_KNOWS_NO_LINES) else ()
        return _Parsed(lines, (_BY_LINES,), warnings, is_literal=True)
    warnings = (_PASSED_OVER,) if name == _CONFIG and is_before_yaml else ()
    try:
        parsed = replace(_yaml(file, text), warnings=warnings)
    except SettingsFileError:
        if not lines[0] or versions.within(_KNOWS_YAML if name == _CONFIG else _KNOWS_NO_LINES):
            raise
        return _Parsed(lines, (_NOT_YAML,), warnings, is_literal=True)
    is_flat = all(isinstance(tree, dict) and not _has_nested(tree) for tree in parsed.trees)
    return _Parsed(lines, (_BY_LINES,), warnings, is_literal=True) if is_before_yaml and is_flat else parsed


def _has_nested(tree: dict[str, Any]) -> bool:
    return any(isinstance(value, dict | list) for value in tree.values())


def _documents(trees: Sequence[Tree], wish: _Wish) -> Iterator[tuple[str, list[Entry] | None]]:
    """Yield a label and the entries of each document; None for those of a resource that is another part's."""
    for tree in trees:
        if not is_resource(tree):
            yield "", list(entries_of(_unpacked(_without_extensions(tree), wish)))
            continue
        for resource in resources(tree):  # type: ignore[arg-type]  # is_resource says that it is a mapping
            label, held = settings_in(resource, wish.section)
            yield label, None if held is None else list(entries_of(_unpacked(held, wish)))


def _without_extensions(tree: Tree) -> Tree:
    """Return a file of Docker Compose without its `x-…` keys, which hold what is used elsewhere in it; else the same.

    Docs: Compose Specification, Extension.
    """
    if isinstance(tree, dict) and isinstance(tree.get("services"), dict):
        return {name: value for name, value in tree.items() if not name.startswith("x-")}
    return tree


def _unpacked(tree: Any, wish: _Wish) -> Any:
    """Return the tree with the files that stand in it as text, as in a config map, read as files."""
    if isinstance(tree, list):
        return [_unpacked(item, wish) for item in tree]
    if not isinstance(tree, dict):
        return tree
    return {
        name: _file_in(name, value, wish) if isinstance(value, str) else _unpacked(value, wish)
        for name, value in tree.items()
    }


def _file_in(name: str, value: str, wish: _Wish) -> Any:
    kind = Path(name).suffix
    if kind not in _KNOWN and _PROPERTIES.fullmatch(value):
        kind = ".properties"
    if kind not in _KNOWN or not _SEPARATED.search(value):
        return value
    try:
        return Documents(_parsed(name, kind, value, wish).trees)
    except SettingsFileError:
        return value


def _parted(
    documents: Sequence[tuple[str, list[Entry]]], profile: str
) -> Iterator[tuple[str, tuple[Entry, ...]]]:
    """Yield what holds together, of each resource for itself, and of other documents: each profile of each file."""
    loose = [entries for label, entries in documents if not label]
    apart = [(label, [entries]) for label, entries in documents if label]
    for label, held in (*([("", loose)] if loose else []), *apart):
        for selection in selected(held, profile):
            named = f"profile {selection.profile}" if selection.profile else ""
            yield ", ".join(part for part in (label, named) if part), selection.entries


def _places(label: str, entries: Sequence[Entry], wish: _Wish) -> Iterator[Place]:
    for place in places_of(wish.section, entries, any_style=wish.any_style):
        yield replace(place, name=", ".join(part for part in (label, place.name) if part))


def _with_clusters(places: Sequence[Place]) -> Sequence[Place]:
    """Return topics that are resources with what their cluster, a resource beside them, sets where they do not."""
    clusters = [place for place in places if place.name.startswith("Kafka ")]
    topics = [place for place in places if place.name.startswith("KafkaTopic ")]
    if len(clusters) != 1 or not topics:
        return places
    return [topic.over(clusters[0]) for topic in topics]

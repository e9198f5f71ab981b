"""Reads the settings of one part from one file."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from tieout.contracts.secrets import is_secret, is_secret_name
from tieout.errors import SettingsFileError
from tieout.linting.reading.entries import Documents, Entry, entries_of, is_variable, key_of
from tieout.linting.reading.families import family_of
from tieout.linting.reading.kubernetes import is_resource, resources, settings_in, with_config_maps
from tieout.linting.reading.lines import flink_lines, properties, sql_settings, variables
from tieout.linting.reading.mentions import mentions, setting_in
from tieout.linting.reading.places import Place, places_of
from tieout.linting.reading.profiles import OF_FILE, selected
from tieout.linting.reading.trees import Tree, json_trees, yaml_trees
from tieout.linting.reading.urls import with_options
from tieout.linting.reading.xml_trees import xml_tree
from tieout.linting.versions import ALL, Versions
from tieout.regular_files import opened_file

_MAX_BYTES: Final = 1_000_000
_FLINK_CONF: Final = "flink-conf.yaml"
_CONFIG: Final = "config.yaml"
_FIRST_WITH_YAML: Final = "1.19"
_FIRST_WITHOUT_LINES: Final = "2.0"
_YAML: Final = (".yaml", ".yml")
_LINES: Final = (".properties", ".conf", ".env")
_ORDERED: Final = (".properties", ".conf")
_KNOWN_SUFFIXES: Final = (*_LINES, ".json", *_YAML, ".xml", ".sql")
_IMPORT: Final = re.compile(
    r"(^|\.)(spring\.config\.(import|location|additional\.?location)|spring\.cloud\.config\.uri|spring\.application\.json"
    r"|(smallrye|quarkus)\.config\.?locations|micronaut\.config\.files|envfile|envfrom|valuesfrom|valuefiles)(\.|\[|$)"
)
"""Settings that import further settings, without dashes and underscores."""

_LOWER_PRECEDENCE: Final = re.compile(r"(^|\.)(envfile|envfrom|valuesfrom|valuefiles)(\.|\[|$)")
"""Imports of variables and of Helm's values that the file itself overrides.

Docs: Compose Specification; Kubernetes, Container; Flux, HelmRelease; Argo CD, Helm.
"""

_JSON: Final = re.compile(r"(^|\.)spring\.application\.json$")

_HIDDEN: Final = "<secret>"
_SEPARATED: Final = re.compile(r"[\n:=]")
_PROPERTIES: Final = re.compile(
    r"(?:[ \t]*(?:[#!].*|[\w.-]+[ \t]*=.*)?(?:\n|$))*[ \t]*[\w.-]+[ \t]*=.*\n.*", re.DOTALL
)
"""Text of several lines that are properties, under a key without a known suffix."""

_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_TEMPLATE: Final = "is a template: its conditions are not followed, and what they hold is taken to be set"
_BY_LINES: Final = "is read by its lines, as Flink before 2.0 reads it, and not as YAML"
_NOT_YAML: Final = "is no YAML, so it is read by its lines, as Flink before 2.0 reads its configuration"
_NOT_THE_FILE_READ: Final = (
    f"is not what the program reads: Flink reads {_FLINK_CONF} before 2.0, and {_CONFIG} from 1.19 on"
)


@dataclass(frozen=True)
class Reading:
    """A file's settings of one part: the places that set it, and all names in the file.

    `notes` say how it was read, `warnings` that a program does not read such a file. With `is_literal`, quotes and
    trailing comments are part of values. A file is not complete if it imports settings, or assigns checked settings
    within a text or next to secrets: these are `unread`, and so are settings that an import may override.
    Only some formats preserve the order of settings (`is_ordered`).
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
class _Request:
    section: str
    versions: Versions
    profile: str
    any_style: bool


def read_settings(
    file: Path, section: str, *, versions: Versions = ALL, profile: str = "", any_style: bool = False
) -> Reading:
    """Return the file's settings of the part, without possible secrets; a file may belong to any program.

    `versions` are those of the part's program, `profile` is the active one in a file with several. With `any_style`
    the program accepts names in another style than the catalogue's.

    Raises:
        SettingsFileError: if it cannot be read, is of no known kind, or does not parse.
    """
    kind = ".env" if file.name.startswith(".env.") else file.suffix or file.name
    if kind not in _KNOWN_SUFFIXES:
        suffixes = ", ".join(_KNOWN_SUFFIXES)
        raise SettingsFileError(
            f"{file}: expected a file that ends in one of {suffixes}, found {file.name!r}"
        )
    request = _Request(section, versions, profile, any_style)
    parsed = _parsed(str(file), kind, _text(file), request)
    labelled, family_notes, profile = _family(file, list(_documents(parsed.trees, request)), request)
    of_part = [(label, entries) for label, entries in labelled if entries is not None]
    if section == "activemq":
        of_part = [(label, list(with_options(entries))) for label, entries in of_part]
    documents = [(label, list(_without_secrets(entries))) for label, entries in of_part]
    names = [label for label, entries in labelled if entries is None]
    names += [e.written for _, entries in documents for e in entries if not e.written.startswith("[")]
    selections = list(_selections(documents, profile))
    places = _with_clusters(
        [place for label, entries in selections for place in _places(label, entries, request)]
    )
    imports = [e for _, entries in selections for e in entries if _IMPORT.search(key_of(e))]
    overridden = set(_overridden(section, imports, [e for _, entries in documents for e in entries]))
    unread = list(_unread(section, [entry for _, entries in of_part for entry in entries]))
    precedence = " and counts before it" if overridden else ""
    notes = [f"takes in more by {each.written}, which is not read{precedence}" for each in imports[:1]]
    notes += [f"{note}, which is not read" for note, _ in unread]
    return Reading(
        tuple(places),
        tuple(names),
        (*parsed.notes, *family_notes, *notes),
        parsed.warnings,
        parsed.is_literal,
        is_complete=not notes,
        unread=frozenset(setting for _, settings in unread for setting in settings) | overridden,
        is_ordered=kind in _ORDERED,
    )


_Labelled = list[tuple[str, list[Entry] | None]]


def _family(
    file: Path, own_documents: _Labelled, request: _Request
) -> tuple[_Labelled, tuple[str, ...], str]:
    """Return the documents of the file and of those read together with it, a note on these, and the active profiles.

    The file's own profile, if any, is active. A file that cannot be read counts as an import of further settings.
    """
    labelled: _Labelled = []
    active, names = request.profile, []
    for member in family_of(file):
        name = member.file.name
        documents, prefix = own_documents, ""
        if member.file == file:
            active = ",".join(filter(None, (active, member.profile)))
        else:
            names.append(name)
            documents, prefix = _member(member.file, request), f"{name}: "
        condition = [Entry((OF_FILE,), 0, member.profile, f"[{OF_FILE}]")] if member.profile else []
        labelled += [
            (
                label,
                entries
                and [*condition, *(replace(e, written=_prefixed(prefix, e.written)) for e in entries)],
            )
            for label, entries in documents
        ]
    note = f"is read together with {', '.join(names)} beside it, as Spring and Quarkus do"
    return labelled, (note,) if names else (), active


def _prefixed(prefix: str, written: str) -> str:
    return written if written.startswith("[") else f"{prefix}{written}"


def _member(file: Path, request: _Request) -> _Labelled:
    try:
        return list(_documents(_parsed(str(file), file.suffix, _text(file), request).trees, request))
    except SettingsFileError:
        return [("", [Entry(("spring", "config", "import"), 0, file.name, "spring.config.import")])]


def _overridden(section: str, imports: Sequence[Entry], entries: Sequence[Entry]) -> Iterator[str]:
    """Yield the checked settings that an import may override.

    An import overrides the importing file, but not variables; JSON in a variable overrides these too. Docs: Spring
    Boot, Externalized Configuration, Importing Additional Data.
    """
    keys = [key for each in imports if not _LOWER_PRECEDENCE.search(key := key_of(each))]
    by_json = any(_JSON.search(key) for key in keys)
    for entry in entries if keys else ():
        setting = setting_in(section, entry.segments)
        if setting is not None and (by_json or not is_variable(entry)):
            yield setting


def _unread(section: str, entries: Sequence[Entry]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield a note for each place that assigns checked settings without being read, and these settings."""
    for name, settings in mentions(section, entries):
        yield f"gives {', '.join(settings)} in the text of {name}", settings
    for entry in entries:
        setting = setting_in(section, entry.segments)
        if setting is not None and _is_secret(entry):
            yield f"gives {entry.written} where secrets stand", (setting,)


def _is_secret(entry: Entry) -> bool:
    return is_secret_name(entry.written) or is_secret(entry.value)


def _without_secrets(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the entries without possible secrets; of one that takes in more, the name is kept."""
    for entry in entries:
        if not _is_secret(entry):
            yield entry
        elif _IMPORT.search(key_of(entry)):
            yield replace(entry, value=_HIDDEN)


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


def _parsed(file: str, kind: str, text: str, request: _Request) -> _Parsed:
    """Return the documents in the text, and notes on how they were read."""
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
    return _flink(file, text, request.versions) if request.section == "flink" else _yaml(file, text)


def _yaml(file: str, text: str) -> _Parsed:
    trees, is_template = yaml_trees(file, text)
    return _Parsed(trees, (_TEMPLATE,) if is_template else ())


def _refuse_braces(file: str, kind: str, text: str) -> None:
    """Refuse a `.conf` with nested braces, whose settings would be read without the enclosing names.

    Raises:
        SettingsFileError: if a line ends in an opening brace.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if kind == ".conf" and line.split("#")[0].rstrip().endswith("{") and "${" not in line:
            raise SettingsFileError(
                f"{file}:{number}: expected a setting on each line, found a brace: HOCON is not read; "
                "name a .properties or .json file of the same settings"
            )


def _flink(file: str, text: str, versions: Versions) -> _Parsed:
    """Return a configuration of Flink: lines in its older file, or in any file before it supported YAML; else YAML.

    A document that wraps the configuration, such as a resource, is always YAML.
    """
    name, is_before_yaml = Path(file).name, not versions.overlap(_FIRST_WITH_YAML, "")
    lines = [flink_lines(text)]
    if name == _FLINK_CONF:
        warnings = (_NOT_THE_FILE_READ,) if versions.within(_FIRST_WITHOUT_LINES) else ()
        return _Parsed(lines, (_BY_LINES,), warnings, is_literal=True)
    warnings = (_NOT_THE_FILE_READ,) if name == _CONFIG and is_before_yaml else ()
    try:
        parsed = replace(_yaml(file, text), warnings=warnings)
    except SettingsFileError:
        if not lines[0] or versions.within(_FIRST_WITH_YAML if name == _CONFIG else _FIRST_WITHOUT_LINES):
            raise
        return _Parsed(lines, (_NOT_YAML,), warnings, is_literal=True)
    is_flat = all(isinstance(tree, dict) and not _has_nested(tree) for tree in parsed.trees)
    return _Parsed(lines, (_BY_LINES,), warnings, is_literal=True) if is_before_yaml and is_flat else parsed


def _has_nested(tree: dict[str, Any]) -> bool:
    return any(isinstance(value, dict | list) for value in tree.values())


def _documents(trees: Sequence[Tree], request: _Request) -> Iterator[tuple[str, list[Entry] | None]]:
    """Yield a label and the entries of each document; None instead of entries for another part's resource."""
    found = [list(resources(tree)) if is_resource(tree) else None for tree in trees]  # type: ignore[arg-type]
    filled = iter(with_config_maps([resource for each in found for resource in each or ()]))
    for tree, of_tree in zip(trees, found, strict=True):
        if of_tree is None:
            yield "", list(entries_of(_unpacked(_without_extensions(tree), request)))
        for resource in islice(filled, len(of_tree or ())):
            label, settings = settings_in(resource, request.section)
            yield label, None if settings is None else list(entries_of(_unpacked(settings, request)))


def _without_extensions(tree: Tree) -> Tree:
    """Return a file of Docker Compose without its `x-…` keys, which are copied elsewhere in it; any other unchanged.

    Docs: Compose Specification, Extension.
    """
    if isinstance(tree, dict) and isinstance(tree.get("services"), dict):
        return {name: value for name, value in tree.items() if not name.startswith("x-")}
    return tree


def _unpacked(tree: Any, request: _Request) -> Any:
    """Return the tree with embedded files, as in a config map, parsed."""
    if isinstance(tree, list):
        return [_unpacked(item, request) for item in tree]
    if not isinstance(tree, dict):
        return tree
    return {
        name: _file_in(name, value, request) if isinstance(value, str) else _unpacked(value, request)
        for name, value in tree.items()
    }


def _file_in(name: str, value: str, request: _Request) -> Any:
    kind = Path(name).suffix
    if kind not in _KNOWN_SUFFIXES and _PROPERTIES.fullmatch(value):
        kind = ".properties"
    if kind not in _KNOWN_SUFFIXES or not _SEPARATED.search(value):
        return value
    try:
        return Documents(_parsed(name, kind, value, request).trees)
    except SettingsFileError:
        return value


def _selections(
    documents: Sequence[tuple[str, list[Entry]]], profile: str
) -> Iterator[tuple[str, tuple[Entry, ...]]]:
    """Yield the entries that are active together, per resource, and per profile of the other documents."""
    unlabelled = [entries for label, entries in documents if not label]
    labelled = [(label, [entries]) for label, entries in documents if label]
    for label, group in (*([("", unlabelled)] if unlabelled else []), *labelled):
        for selection in selected(group, profile):
            profile_label = f"profile {selection.profile}" if selection.profile else ""
            yield ", ".join(part for part in (label, profile_label) if part), selection.entries


def _places(label: str, entries: Sequence[Entry], request: _Request) -> Iterator[Place]:
    for place in places_of(request.section, entries, any_style=request.any_style):
        yield replace(place, name=", ".join(part for part in (label, place.name) if part))


def _with_clusters(places: Sequence[Place]) -> Sequence[Place]:
    """Return topic resources with the settings of the cluster resource in the same file as their defaults."""
    clusters = [place for place in places if place.name.startswith("Kafka ")]
    topics = [place for place in places if place.name.startswith("KafkaTopic ")]
    if len(clusters) != 1 or not topics:
        return places
    return [topic.over(clusters[0]) for topic in topics]

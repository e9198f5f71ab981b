"""Parses XML settings files, such as ActiveMQ's and Spring's, into trees of text; attributes are settings."""

from __future__ import annotations

from typing import Any, Final, NoReturn
from xml.parsers import expat

from tieout.errors import SettingsFileError

_MAX_ELEMENTS: Final = 20_000
_MAX_DEPTH: Final = 100


def xml_tree(file: str, text: str) -> dict[str, Any]:
    """Return the document's elements as mappings under their local names; several of one name are a list.

    A document type is refused: settings do not need it, and its entities can expand without limit.

    Raises:
        SettingsFileError: if the text is not XML, has a document type, or is too large.
    """
    builder = _Builder(file)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartDoctypeDeclHandler = lambda *_: builder.refuse("expected no document type, found one")
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise SettingsFileError(f"{file}:{error.lineno}: no XML of settings") from None
    except ValueError:
        raise SettingsFileError(f"{file}: no XML of settings") from None
    return builder.root


class _Builder:
    """Builds the tree of one document, up to a number and depth of elements."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.root: dict[str, Any] = {}
        self._open: list[dict[str, Any]] = [self.root]
        self._count = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Handle an element's start."""
        self._count += 1
        if self._count > _MAX_ELEMENTS or len(self._open) > _MAX_DEPTH:
            self.refuse(f"expected at most {_MAX_ELEMENTS} elements, {_MAX_DEPTH} deep")
        element: dict[str, Any] = {_local_name(key): value for key, value in attributes.items()}
        parent = self._open[-1]
        existing = parent.get(_local_name(name))
        if existing is None or isinstance(existing, str):
            parent[_local_name(name)] = element
        elif isinstance(existing, list):
            existing.append(element)
        else:
            parent[_local_name(name)] = [existing, element]
        self._open.append(element)

    def end(self, _: str) -> None:
        """Handle an element's end."""
        self._open.pop()

    def refuse(self, reason: str) -> NoReturn:
        """Refuse the file.

        Raises:
            SettingsFileError: always.
        """
        raise SettingsFileError(f"{self.file}: {reason}")


def _local_name(name: str) -> str:
    """Return a name without its namespace."""
    return name.rpartition(" ")[2]

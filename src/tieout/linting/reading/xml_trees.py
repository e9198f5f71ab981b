"""XML as a tree of text, as ActiveMQ's and Spring's files of settings are: attributes are settings of their element."""

from __future__ import annotations

from typing import Any, Final, NoReturn
from xml.parsers import expat

from tieout.errors import SettingsFileError

_MAX_ELEMENTS: Final = 20_000
_MAX_DEPTH: Final = 100


def xml_tree(file: str, text: str) -> dict[str, Any]:
    """Return the document's elements as mappings under their names without a prefix; several of one name are a list.

    A document type is refused: a file of settings needs none, and entities in it may stand for any number of others.

    Raises:
        SettingsFileError: where the text is no XML, has a document type, or is too large.
    """
    walk = _Walk(file)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartDoctypeDeclHandler = lambda *_: walk.refuse("expected no document type, found one")
    parser.StartElementHandler = walk.start
    parser.EndElementHandler = walk.end
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise SettingsFileError(f"{file}:{error.lineno}: no XML of settings") from None
    except ValueError:
        raise SettingsFileError(f"{file}: no XML of settings") from None
    return walk.root


class _Walk:
    """The way through one document, which bounds the work."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.root: dict[str, Any] = {}
        self._open: list[dict[str, Any]] = [self.root]
        self._count = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Take an element's beginning."""
        self._count += 1
        if self._count > _MAX_ELEMENTS or len(self._open) > _MAX_DEPTH:
            self.refuse(f"expected at most {_MAX_ELEMENTS} elements, {_MAX_DEPTH} deep")
        element: dict[str, Any] = {_plain(key): value for key, value in attributes.items()}
        above = self._open[-1]
        known = above.get(_plain(name))
        if known is None or isinstance(known, str):
            above[_plain(name)] = element
        elif isinstance(known, list):
            known.append(element)
        else:
            above[_plain(name)] = [known, element]
        self._open.append(element)

    def end(self, _: str) -> None:
        """Take an element's end."""
        self._open.pop()

    def refuse(self, why: str) -> NoReturn:
        """Give up the file.

        Raises:
            SettingsFileError: always.
        """
        raise SettingsFileError(f"{self.file}: {why}")


def _plain(name: str) -> str:
    """Return a name without its namespace."""
    return name.rpartition(" ")[2]

"""Parses XML settings files, such as ActiveMQ's and Spring's, into trees of text; attributes are settings.

So are elements with only text or without content. An element with only a name and a value, such as Spring's `entry` and
`prop` and Hadoop's `property`, is the setting of that name.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn
from xml.parsers import expat

from tieout.errors import SettingsFileError

_MAX_ELEMENTS: Final = 20_000
_MAX_DEPTH: Final = 100
_NAME_ATTRIBUTES: Final = ("key", "name")
_VALUE_ATTRIBUTE: Final = "value"


def xml_tree(file: str, text: str) -> dict[str, Any]:
    """Return the document's elements as mappings under their local names; several of one name are a list.

    >>> xml_tree("s.xml", "<a><entry key='acks' value='1'/><prop key='b'>2</prop><c>3</c></a>")
    {'a': {'acks': '1', 'b': '2', 'c': '3'}}

    A document type is refused: settings do not need it, and its entities can expand without limit.

    Raises:
        SettingsFileError: if the text is not XML, has a document type, or is too large.
    """
    builder = _Builder(file)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartDoctypeDeclHandler = lambda *_: builder.refuse("expected no document type, found one")
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.text
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
        self._texts: list[list[str]] = [[]]
        self._count = 0

    def start(self, _: str, attributes: dict[str, str]) -> None:
        """Handle an element's start."""
        self._count += 1
        if self._count > _MAX_ELEMENTS or len(self._open) > _MAX_DEPTH:
            self.refuse(f"expected at most {_MAX_ELEMENTS} elements, {_MAX_DEPTH} deep")
        self._open.append({_local_name(key): value for key, value in attributes.items()})
        self._texts.append([])

    def text(self, text: str) -> None:
        """Handle text within an element."""
        self._texts[-1].append(text)

    def end(self, name: str) -> None:
        """Handle an element's end, and add it to its parent."""
        element, text = self._open.pop(), "".join(self._texts.pop()).strip()
        parent = self._open[-1]
        setting = next((element[key] for key in _NAME_ATTRIBUTES if isinstance(element.get(key), str)), None)
        value = element.get(_VALUE_ATTRIBUTE, text or None)
        if setting is not None and isinstance(value, str) and len(element) <= 2:
            parent.setdefault(setting, value)
        elif not element:
            parent.setdefault(_local_name(name), text)
        else:
            _put(parent, _local_name(name), element)

    def refuse(self, reason: str) -> NoReturn:
        """Refuse the file.

        Raises:
            SettingsFileError: always.
        """
        raise SettingsFileError(f"{self.file}: {reason}")


def _local_name(name: str) -> str:
    """Return a name without its namespace."""
    return name.rpartition(" ")[2]


def _put(parent: dict[str, Any], name: str, element: dict[str, Any]) -> None:
    existing = parent.get(name)
    if existing is None or isinstance(existing, str):
        parent[name] = element
    elif isinstance(existing, list):
        existing.append(element)
    else:
        parent[name] = [existing, element]

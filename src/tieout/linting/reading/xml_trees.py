"""XML as a tree of text, as ActiveMQ's and Spring's files of settings are: attributes are settings of their element.

So is an element that holds nothing but text, or nothing at all. Where an element only names a setting and gives its
value, as Spring's `entry` and `prop` and Hadoop's `property` do, it is that setting.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn
from xml.parsers import expat

from tieout.errors import SettingsFileError

_MAX_ELEMENTS: Final = 20_000
_MAX_DEPTH: Final = 100
_NAMES: Final = ("key", "name")
_VALUE: Final = "value"


def xml_tree(file: str, text: str) -> dict[str, Any]:
    """Return the document's elements as mappings under their names without a prefix; several of one name are a list.

    >>> xml_tree("s.xml", "<a><entry key='acks' value='1'/><prop key='b'>2</prop><c>3</c></a>")
    {'a': {'acks': '1', 'b': '2', 'c': '3'}}

    A document type is refused: a file of settings needs none, and entities in it may stand for any number of others.

    Raises:
        SettingsFileError: where the text is no XML, has a document type, or is too large.
    """
    walk = _Walk(file)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartDoctypeDeclHandler = lambda *_: walk.refuse("expected no document type, found one")
    parser.StartElementHandler = walk.start
    parser.EndElementHandler = walk.end
    parser.CharacterDataHandler = walk.text
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
        self._texts: list[list[str]] = [[]]
        self._count = 0

    def start(self, _: str, attributes: dict[str, str]) -> None:
        """Take an element's beginning."""
        self._count += 1
        if self._count > _MAX_ELEMENTS or len(self._open) > _MAX_DEPTH:
            self.refuse(f"expected at most {_MAX_ELEMENTS} elements, {_MAX_DEPTH} deep")
        self._open.append({_plain(key): value for key, value in attributes.items()})
        self._texts.append([])

    def text(self, text: str) -> None:
        """Take text within an element."""
        self._texts[-1].append(text)

    def end(self, name: str) -> None:
        """Take an element's end, and put it into the one around it."""
        element, text = self._open.pop(), "".join(self._texts.pop()).strip()
        above = self._open[-1]
        setting = next((element[key] for key in _NAMES if isinstance(element.get(key), str)), None)
        value = element.get(_VALUE, text or None)
        if setting is not None and isinstance(value, str) and len(element) <= 2:
            above.setdefault(setting, value)
        elif not element:
            above.setdefault(_plain(name), text)
        else:
            _put(above, _plain(name), element)

    def refuse(self, why: str) -> NoReturn:
        """Give up the file.

        Raises:
            SettingsFileError: always.
        """
        raise SettingsFileError(f"{self.file}: {why}")


def _plain(name: str) -> str:
    """Return a name without its namespace."""
    return name.rpartition(" ")[2]


def _put(above: dict[str, Any], name: str, element: dict[str, Any]) -> None:
    known = above.get(name)
    if known is None or isinstance(known, str):
        above[name] = element
    elif isinstance(known, list):
        known.append(element)
    else:
        above[name] = [known, element]

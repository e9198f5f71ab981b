"""The encodings in which text files of evidence come: UTF-8, UTF-16 and UTF-32, with a byte order mark or without.

PowerShell writes UTF-16 where a tool's output is redirected into a file. Without a mark UTF-16 and UTF-32 are told by
their first two characters, which are ASCII in JSON, in a CSV header and in what tools print: so some bytes are zero.

Source: the Unicode Standard, section 23.8 (byte order marks); RFC 4627, section 3 (encodings without a mark).
"""

from __future__ import annotations

import bz2
import codecs
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from tieout.regular_files import require_file

_HEAD_BYTES: Final = 8
_UNDECODED: Final = "tieout_undecoded"
_BYTE_OF_NO_TEXT: Final = "\udcff"
"""Written with `surrogateescape` this is the byte 0xFF, which UTF-8 does not have."""
_OPENING: Final[dict[str, Callable[..., Any]]] = {".gz": gzip.open, ".bz2": bz2.open}
_CHARACTERS: Final = 1 << 20


@dataclass(frozen=True)
class Encoding:
    """How a file's text is encoded: Python's codec, which removes the mark, its usual name, whether it has a mark."""

    codec: str
    name: str
    has_mark: bool

    @property
    def is_utf8(self) -> bool:
        """Whether Spark reads the text as it lies there."""
        return self.name == "UTF-8"

    @property
    def note(self) -> str | None:
        """What to say of a file in this encoding, None of UTF-8 without a mark."""
        if not self.is_utf8:
            return f"read as {self.name}, which {'its byte order mark' if self.has_mark else 'its first bytes'} shows"
        return "its byte order mark was left out" if self.has_mark else None


UTF8: Final = Encoding("utf-8", "UTF-8", has_mark=False)
_MARKS: Final = (
    # The mark of UTF-32 begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, Encoding("utf-32", "UTF-32", has_mark=True)),
    (codecs.BOM_UTF32_BE, Encoding("utf-32", "UTF-32", has_mark=True)),
    (codecs.BOM_UTF8, Encoding("utf-8-sig", "UTF-8", has_mark=True)),
    (codecs.BOM_UTF16_LE, Encoding("utf-16", "UTF-16", has_mark=True)),
    (codecs.BOM_UTF16_BE, Encoding("utf-16", "UTF-16", has_mark=True)),
)


def encoding_of(head: bytes) -> Encoding:
    r"""Return the encoding that a file's first bytes show; UTF-8 where they show no other.

    >>> encoding_of(b"\xff\xfe{\0").name, encoding_of(b"{\0}\0").codec, encoding_of(b'{"id": 1}').name
    ('UTF-16', 'utf-16-le', 'UTF-8')
    """
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    return next(
        (
            Encoding(codec, codec[:6].upper(), has_mark=False)
            for codec, width in (("utf-32-le", 4), ("utf-32-be", 4), ("utf-16-le", 2), ("utf-16-be", 2))
            if _begins_in_ascii(head[: 2 * width], codec, width)
        ),
        UTF8,
    )


def _begins_in_ascii(head: bytes, codec: str, width: int) -> bool:
    """Return whether the bytes are two characters of ASCII text in an encoding of that many bytes a character."""
    if len(head) < 2 * width:
        return False
    try:
        text = head.decode(codec)
    except UnicodeDecodeError:
        return False
    return text.isascii() and all(character.isprintable() or character in "\t\r\n" for character in text)


def as_utf8(content: bytes) -> bytes:
    r"""Return a small file's text in UTF-8 and without a mark; unchanged where it is no text in its encoding.

    >>> as_utf8("{}".encode("utf-16")), as_utf8(b"\xef\xbb\xbf{}"), as_utf8(b"\xac\xed\0\5")
    (b'{}', b'{}', b'\xac\xed\x00\x05')
    """
    encoding = encoding_of(content[:_HEAD_BYTES])
    try:
        return content if encoding == UTF8 else content.decode(encoding.codec).encode()
    except UnicodeDecodeError:
        return content


def encoding_in(path: Path) -> Encoding:
    """Return the encoding of a file, of its content where its name says that it is packed.

    Raises:
        OSError, EOFError: where it cannot be opened or unpacked.
    """
    with opened_bytes(path) as file:
        return encoding_of(file.read(_HEAD_BYTES))


def opened_bytes(path: Path) -> IO[bytes]:
    """Open a file to read its bytes, unpacked where its name says that it is packed with gzip or bzip2.

    Raises:
        OSError, EOFError: where it cannot be opened or unpacked.
    """
    require_file(path)
    file: IO[bytes] = _OPENING.get(path.suffix, open)(path, "rb")
    return file


def opened(path: Path, newline: str | None = None) -> IO[str]:
    """Open a file as text, whatever its encoding, unpacked and without its mark; what does not decode is replaced.

    Raises:
        OSError, EOFError: where it cannot be opened or unpacked.
    """
    return _opened(path, encoding_in(path), "replace", newline)


def write_as_utf8(path: Path, encoding: Encoding, target: Path) -> None:
    """Write the text as UTF-8; what does not decode becomes a byte that UTF-8 does not have, so its line is no text.

    Raises:
        OSError, EOFError: where one of the files cannot be opened, unpacked or written.
    """
    with (
        _opened(path, encoding, _UNDECODED, "") as source,
        target.open("w", encoding="utf-8", errors="surrogateescape", newline="") as copy,
    ):
        while text := source.read(_CHARACTERS):
            copy.write(text)


def _opened(path: Path, encoding: Encoding, errors: str, newline: str | None) -> IO[str]:
    opening = _OPENING.get(path.suffix, open)
    file: IO[str] = opening(path, "rt", encoding=encoding.codec, errors=errors, newline=newline)
    return file


def _left_as_no_text(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return _BYTE_OF_NO_TEXT, error.end


codecs.register_error(_UNDECODED, _left_as_no_text)

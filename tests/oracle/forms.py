"""The form of an id or hash, however it is written (interpretation 91)."""

from __future__ import annotations

import re
from unicodedata import normalize

_IGNORED = dict.fromkeys(map(ord, " \"{}'\t\n\r\u00a0\u200b\ufeff"))
_NUMBER = re.compile(r"\+?([0-9]+)(\.0*)?")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def form_of(name: str) -> str:
    """Return what is left of a name without case, blanks, quotes, leading zeros, an end in .0, a UUID's dashes."""
    bare = normalize("NFC", name).translate(_IGNORED).lower()
    number = _NUMBER.fullmatch(bare)
    if number:
        return number[1].lstrip("0")
    return bare.replace("-", "") if _UUID.fullmatch(bare) else bare

"""The form of an id or hash, however it is written (interpretation 91)."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from unicodedata import normalize
from urllib.parse import unquote

_IGNORED = dict.fromkeys(map(ord, " \"{}[]'\0\t\n\r\u00a0\u200b\ufeff"))
_NUMBER = re.compile(r"\+?([0-9]+)(\.0*)?")
_THOUSANDS = re.compile(r"\+?([0-9]{1,3}(,[0-9]{3})+)(\.0*)?|\+?([0-9]{1,3}(\.[0-9]{3})+)")
_EXPONENT = re.compile(r"[0-9](\.[0-9]{1,16})?e\+?1?[0-9]")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def form_of(name: str) -> str:
    """Return a name without what programs write differently: case, blanks, quotes, and more of a number or a UUID."""
    bare = normalize("NFC", _unescaped(name)).translate(_IGNORED).lower()
    if number := _NUMBER.fullmatch(bare):
        return _rounded(number[1].lstrip("0"))
    if thousands := _THOUSANDS.fullmatch(bare):
        return _rounded(re.sub("[,.]", "", thousands[1] or thousands[4]).lstrip("0"))
    if _EXPONENT.fullmatch(bare):
        return _rounded(str(Decimal(bare).quantize(Decimal(1), ROUND_HALF_UP)))
    return bare.replace("-", "") if _UUID.fullmatch(bare) else bare


def _rounded(digits: str) -> str:
    """Return a whole number as a program has it that reads each number as a double."""
    return str(int(float(digits))) if 16 <= len(digits) <= 38 else digits


def _unescaped(name: str) -> str:
    try:
        return unquote(name, errors="strict")
    except UnicodeDecodeError:
        return name

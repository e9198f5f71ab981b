"""Values as PostgreSQL can hold them: refused characters are escaped visibly, long values are cut visibly.

Ids and payload hashes come from other people's systems. One zero byte in one of them must not cost a whole
statement.
"""

from __future__ import annotations

import hashlib
import math
import re
from typing import Final

TEXT_LIMIT: Final = 500
"""Characters of an id, a topic or a name, at most 2,000 bytes: a B-tree entry holds 2,704."""

EVIDENCE_LIMIT: Final = 2_000
"""Characters of one string inside a break's evidence."""

_REFUSED: Final = re.compile("[\x00\ud800-\udfff]")


def storable_text(value: str, limit: int | None = None) -> str:
    r"""Return `value` without zero bytes and lone surrogates, and not longer than `limit` characters.

    A cut text ends with the digest of the whole, so that different texts stay different.

    >>> storable_text("order\x007")
    'order\\u00007'
    """
    escaped = _REFUSED.sub(lambda match: f"\\u{ord(match[0]):04x}", value)
    if limit is None or len(escaped) <= limit:
        return escaped
    digest = hashlib.sha256(escaped.encode()).hexdigest()[:32]
    ending = f"… ({len(escaped)} characters, sha256 {digest})"
    return escaped[: limit - len(ending)] + ending


def storable_json(value: object, limit: int | None = None) -> object:
    """Return a JSON value with every string and key made storable.

    Infinities and NaN, which JSON does not have, become text.
    """
    if isinstance(value, str):
        return storable_text(value, limit)
    if isinstance(value, dict):
        return {storable_text(str(key), limit): storable_json(item, limit) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable_json(item, limit) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value

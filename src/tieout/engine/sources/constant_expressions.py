"""Refuses expressions that name no column, where one value for every row would hide what is lost or changed.

In Spark SQL a text in double quotes is a text, not the name of a column. So `"id"` as a message's id makes one message
of all rows, `sha2("body", 256)` gives all rows one hash, and `"status" = 'SENT'` leaves out every row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from tieout.contracts.columns import CONTENT_COLUMNS
from tieout.engine.sources.named_columns import is_text, paths_in, without_literals
from tieout.errors import SourceError

_IDENTITIES: Final = ("message_id", "offset")
"""Columns whose values distinguish rows: no constant is right."""
_METADATA: Final = "_metadata"
_ALLOWED: Final = re.compile(r"\bnull\b|`|[(,]\s*\*\s*[),]", re.IGNORECASE)
"""Null, a name in backticks, or a star as an argument: all columns."""
_ADVICE: Final = (
    "expected an expression over the source's columns, found {}, which is the same for every row; a column's name "
    "stands without quotes, or in backticks: in double quotes it is a text"
)


def require_columns(mapping: Mapping[str, str], where: str | None, names: Sequence[str], place: str) -> None:
    """Refuse a constant as an id or an offset, as a hash that is computed, and as a condition that compares texts.

    A hash may be one text for all rows, each column may be null, and `where` may be `true`. `names` are the source's
    columns.

    Raises:
        SourceError: with the place of the expression in the contract.
    """
    known_names = (*names, _METADATA)
    for name, text in mapping.items():
        is_checked = name in _IDENTITIES or (name in CONTENT_COLUMNS and not is_text(text))
        if is_checked and _is_constant(text, known_names):
            raise SourceError(f"{place}.columns.{name}: {_ADVICE.format(text.strip())}")
    if where is not None and without_literals(where) != where and _is_constant(where, known_names):
        raise SourceError(f"{place}.where: {_ADVICE.format(where.strip())}")


def _is_constant(text: str, names: Sequence[str]) -> bool:
    r"""Return whether an expression has a value, and names none of the columns.

    >>> _is_constant("concat('a', \"id\")", ["id"]), _is_constant("concat('a', ID)", ["id"])
    (True, False)
    >>> _is_constant("cast(null as string)", ["id"]), _is_constant("to_json(struct(*))", ["id"])
    (False, False)
    """
    return not paths_in(text, names) and _ALLOWED.search(without_literals(text)) is None

"""Columns that a contract takes from a JSON field which no line has.

Programs leave out a field that has no value: an hour without an error has no reason. No line shows that the field
exists, so it may as well be misspelt. Where a row without the column says less and nothing wrong, the column is null.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from tieout.contracts import LedgerSpec
from tieout.engine.sources.named_columns import head_of, is_path

_MAY_BE_OMITTED: Final = ("completed_at", "metadata", "reason")
"""Columns that tell more about a row, and decide neither which message it is of nor what became of it."""
_ALIKE: Final = 0.75


def omitted_columns(spec: LedgerSpec, names: Sequence[str]) -> dict[str, str]:
    """Return the ledger's columns that are taken from a field of JSON that no line has, each with the field.

    Not where a field that the lines have is called almost so. `names` are the fields of all lines.
    """
    if getattr(spec.source, "format", None) != "jsonl" or not names:
        return {}
    own = {name.lower() for name in names}
    return {
        column: text
        for column, text in spec.columns.items()
        if column in _MAY_BE_OMITTED
        and is_path(text)
        and not _may_mean_any(head_of(text.strip()).lower(), own)
    }


def _may_mean_any(field: str, own: set[str]) -> bool:
    """Return whether a field, in lower case, is one of these, or a misspelt one.

    >>> _may_mean_any("done_ta", {"id", "done_at"}), _may_mean_any("done_at", {"id", "sent_at"})
    (True, False)
    """
    return field in own or bool(get_close_matches(field, own, n=1, cutoff=_ALIKE))

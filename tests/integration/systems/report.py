"""The page of what was found after each fault of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from tests.integration.report import TABLE_HEAD, Line, table_of
from tests.integration.systems.selection import TITLES, system_of

_HEAD = """\
# Faults of engines, played for real

What Tieout finds after each of these faults of a real engine, on what the engine keeps itself: its positions, its
output, its producers' records in the log. Beside each fault stands the configuration that survives it. What must be
found is known from what was done: to the message, with class, flags, place, locus and cause. `make systems` plays all
of them again, compares, and writes this page; the tests are in `tests/integration/systems`.

In each cell stand the verdict, the messages by class, and in brackets the locus and the cause of breaks. *Offsets*
are those of the input's log within the window; each is in one state of
[the balance](taxonomy.md#5-statement-everything-adds-up-or-the-auditor-is-wrong), and `unexplained` must be 0.

*Played* are the seconds from the making of the topic to the end of the last application, beside another fault;
*judged* those that `tieout reconcile` took in a session that runs. This page is of {day}: {judgements} judgements,
and {minutes} minutes from the start of the broker to the last of them.
"""


def page_of(lines: Sequence[Line], day: date, seconds: float) -> str:
    """Return the page: the lines of one run on that day, system by system, and how long it took."""
    page = _HEAD.format(day=day, judgements=len(lines), minutes=f"{seconds / 60:.1f}")
    for system, title in TITLES.items():
        own = [line for line in lines if system_of(line.name) == system]
        page += f"\n## {title}\n\n{TABLE_HEAD}{table_of(own)}"
    return page

"""The page of what was found after each of Kafka's own faults."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from tests.integration.report import TABLE_HEAD, Line, table_of

_HEAD = """\
# Kafka's faults, struck for real

What Tieout finds after each of these faults on a real cluster: a controller and two brokers of Kafka {kafka},
killed (`SIGKILL`) and stopped (`SIGSTOP`) as machines fail. Every producer and consumer keeps a ledger of its own;
`log` is read from the brokers' segment files, `committed` from `__consumer_offsets`. What must be found is known from
what was done: to the message, with class, flags, place, locus and cause. `make faults` strikes again, compares,
and writes this page; the tests are in `tests/integration/kafka_faults`.

In each cell stand the verdict, the messages by class, and in brackets the locus and the cause of breaks. *Offsets*
are those of the log within the window; each is in one state of
[the balance](taxonomy.md#5-statement-everything-adds-up-or-the-auditor-is-wrong), and `unexplained` must be 0.

*Played* are the seconds from the making of the topic to the end of its last consumer, beside other faults;
*judged* those that `tieout reconcile` took in a session that runs. This page is of {day}: {judgements} judgements,
and {minutes} minutes from the start of the cluster to the last of them.

"""


def page_of(lines: Sequence[Line], kafka: str, day: date, seconds: float) -> str:
    """Return the page: the lines of one run with this version of Kafka, on that day, and how long it took."""
    head = _HEAD.format(kafka=kafka, day=day, judgements=len(lines), minutes=f"{seconds / 60:.1f}")
    return head + TABLE_HEAD + table_of(lines)

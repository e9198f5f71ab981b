"""Evidence in a running cluster: does it answer, has it the topic, and does an open transaction hide a part?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from tieout.contracts import KafkaSource, LedgerSpec, cluster_topic
from tieout.contracts.times import format_time
from tieout.errors import SourceUnreachableError, TieoutError
from tieout.model import Ledger

if TYPE_CHECKING:
    from tieout.brokers.cluster import Cluster


def topic_lag(spec: LedgerSpec, ledger: Ledger, needed: datetime) -> Iterator[str]:
    """Yield why the topic cannot reach as far as needed.

    A topic reaches as far as the time at which it is read. Readers of committed data, however, see nothing behind the
    first record of an open transaction: if that record is of a time before `needed`, the ledger ends there.
    """
    found = cluster_topic(spec.source)
    if found is None:
        return
    from tieout.brokers.cluster import Cluster  # noqa: PLC0415 - brings librdkafka

    connection, topic = found
    try:
        cluster = Cluster.of(connection, f"ledgers.{ledger}.source")
        numbers = cluster.partitions(topic)
        if not numbers:
            yield f"the cluster has no topic {topic}"
        elif isinstance(spec.source, KafkaSource) and _is_committed_only(spec.source, ledger):
            yield from _hidden(cluster, topic, numbers, needed)
    except SourceUnreachableError as error:
        yield str(error)
    except TieoutError:
        return


def _is_committed_only(source: KafkaSource, ledger: Ledger) -> bool:
    """Return whether the source is read as a reader of committed data would; the log never is."""
    return ledger is not Ledger.LOG and source.isolation != "read_uncommitted"


def _hidden(cluster: Cluster, topic: str, numbers: tuple[int, ...], needed: datetime) -> Iterator[str]:
    """Yield the partitions in which an open transaction hides records from before `needed`."""
    stable = cluster.ends(topic, numbers, is_stable=True)
    ends = cluster.ends(topic, numbers, is_stable=False)
    unstable = [number for number in numbers if stable[number] < ends[number]]
    late_enough = cluster.since(topic, unstable, needed)
    held = [
        number
        for number, first in late_enough.items()
        if stable[number] < (ends[number] if first is None else first)
    ]
    if held:
        named = ", ".join(map(str, sorted(held)))
        yield (
            f"an open transaction hides records of {topic}, partition {named}, from before {format_time(needed)}"
        )

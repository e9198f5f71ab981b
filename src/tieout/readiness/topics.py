"""Evidence in a running cluster: does it answer, has it the topic, and does an open transaction hide a part?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from tieout.brokers.asking import Cluster
from tieout.contracts import KafkaConsumerGroupsSource, KafkaOffsetsSource, KafkaSource, LedgerSpec
from tieout.contracts.times import format_time
from tieout.errors import SourceUnreachableError, TieoutError
from tieout.model import Ledger


def topic_lag(spec: LedgerSpec, ledger: Ledger, needed: datetime) -> Iterator[str]:
    """Yield why the topic cannot reach as far as needed.

    A topic reaches as far as the time at which it is read. Readers of committed data, however, see nothing behind the
    first record of an open transaction: if that record is of a time before `needed`, the ledger ends there.
    """
    source = spec.source
    if (
        not isinstance(source, KafkaSource | KafkaOffsetsSource | KafkaConsumerGroupsSource)
        or source.connection is None
    ):
        return
    try:
        cluster = Cluster.of(source.connection, f"ledgers.{ledger}.source")
        topic = source.topic if isinstance(source, KafkaSource) else "__consumer_offsets"
        numbers = cluster.partitions(topic)
        if not numbers:
            yield f"the cluster has no topic {topic}"
        elif isinstance(source, KafkaSource) and _is_committed_only(source, ledger):
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
    later = cluster.since(topic, numbers, needed)
    held = [
        number
        for number in numbers
        if stable[number] < ends[number] and stable[number] < _first(later[number], ends[number])
    ]
    if held:
        named = ", ".join(map(str, held))
        yield (
            f"an open transaction hides records of {topic}, partition {named}, from before {format_time(needed)}"
        )


def _first(offset: int | None, end: int) -> int:
    """Return the first offset that is late enough, the end where there is none."""
    return end if offset is None else offset

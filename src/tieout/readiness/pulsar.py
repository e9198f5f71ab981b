"""Evidence of Pulsar: does the broker answer, and has it the topic?"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from tieout.contracts import LedgerSpec, PulsarCursorSource, PulsarSource
from tieout.errors import SourceUnreachableError, TieoutError
from tieout.model import Ledger


def pulsar_lag(spec: LedgerSpec, ledger: Ledger) -> Iterator[str]:
    """Yield why the topic cannot be read now; it reaches as far as the time at which it is read."""
    source = spec.source
    if not isinstance(source, PulsarSource | PulsarCursorSource) or source.connection is None:
        return
    from tieout.pulsar import MISSING, Administration, AnswerError  # noqa: PLC0415 - brings TLS

    try:
        broker = Administration.of(source.connection, f"ledgers.{ledger}.source")
        path = "/".join(quote(part, safe="") for part in source.topic_path.split("/"))
        if broker.get(f"persistent/{path}/partitions").status == MISSING:
            yield f"the cluster has no topic {source.topic_path}"
    except SourceUnreachableError as error:
        yield str(error)
    except (TieoutError, AnswerError):
        return

"""Where the answers come from that a contract's source names."""

from __future__ import annotations

from pathlib import Path

from tieout.contracts import PulsarCursorSource, PulsarSource
from tieout.pulsar.administration import Administration
from tieout.pulsar.copies import SavedAnswers


def opened_answers(
    spec: PulsarSource | PulsarCursorSource, base_dir: Path, place: str
) -> Administration | SavedAnswers:
    """Return the answers that the source names; nothing is asked yet.

    Raises:
        ConnectionNotFoundError: where the connection is not defined.
        SourceError: where it is none to a web service.
    """
    if spec.connection is not None:
        return Administration.of(spec.connection, place)
    return SavedAnswers(base_dir.absolute() / (spec.path or ""), f"{place}.path")

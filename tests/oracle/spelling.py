"""Names that stand in two ledgers but for how they are written (interpretation 91)."""

from __future__ import annotations

from collections.abc import Iterable

from tests.oracle.aside import aside_rows
from tests.oracle.fates import Fates
from tests.oracle.forms import form_of
from tests.oracle.history import History, Row
from tests.oracle.messages import Message
from tests.oracle.nameless import outcomes
from tests.oracle.phantoms import finding_of, units_of

from tieout.model import BreakClass, Identity


def topics_of_spellings(fates: Fates) -> tuple[set[str | None], set[str | None]]:
    """Return the topics with such names in which each loss has one, and those in which each phantom has one."""
    history = fates.history
    if history.contract.identity is Identity.POSITION:
        return set(), set()
    sent = [(name, one) for one in fates.matched.messages if (name := _name_of(history, one.attempts[0].row))]
    names = {name for name, _ in sent}
    strange = [
        (name, row) for row in outcomes(history) if (name := _name_of(history, row)) and name not in names
    ]
    unseen = [(name, one) for name, one in sent if _is_unseen(one)]
    sent_forms, strange_forms = ({form_of(name) for name, _ in side} for side in (unseen, strange))
    found = {_topic_of(fates, one) for name, one in unseen if form_of(name) in strange_forms}
    found |= {row.get("topic") for name, row in strange if form_of(name) in sent_forms}
    losses = {
        _topic_of(fates, one)
        for name, one in unseen
        if _is_lost(fates, one) and form_of(name) not in strange_forms
    }
    phantoms = {topic for name, topic in _phantoms(fates) if name is None or form_of(name) not in sent_forms}
    return found - losses, found - phantoms


def _name_of(history: History, row: Row) -> str | None:
    by_content = history.contract.identity is Identity.CONTENT
    name: str | None = row.get("payload_hash" if by_content else "message_id")
    return name


def _is_unseen(message: Message) -> bool:
    return not message.effects and not aside_rows(message) and message.outcome != "failed"


def _topic_of(fates: Fates, message: Message) -> str | None:
    first = fates.first_position(message)
    return first[0] if first else fates.place(message)[0]


def _is_lost(fates: Fates, message: Message) -> bool:
    is_here = fates.history.holds(message.began_at, fates.first_position(message))
    return is_here and fates.disposition(message) == "lost"


def _phantoms(fates: Fates) -> Iterable[tuple[str | None, str | None]]:
    """Yield name and topic of what nobody sent."""
    for unit in units_of(fates, fates.matched.unmatched_effects).values():
        finding = finding_of(fates, unit)
        if finding.primary is BreakClass.PHANTOM_UNKNOWN:
            yield (
                next((name for row, _ in unit if (name := _name_of(fates.history, row))), None),
                finding.topic,
            )

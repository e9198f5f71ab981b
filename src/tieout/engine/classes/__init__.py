"""The class rules, one module a family, and their order: the first that holds is a message's primary class.

Docs: docs/reference/taxonomy.md, section 3. A rule finds; whether that breaks a guarantee, `tieout.verdicts` says.
"""

from __future__ import annotations

from typing import Final

from tieout.engine.classes.corrupted import (
    CORRUPTED_HEADER,
    CORRUPTED_KEY,
    CORRUPTED_TIMESTAMP,
    CORRUPTED_VALUE,
)
from tieout.engine.classes.duplicates import LOG_DUPLICATE, OUTPUT_DUPLICATE, REDELIVERY
from tieout.engine.classes.lost import LOST
from tieout.engine.classes.phantoms import PHANTOM_ABORTED, PHANTOM_UNCOMMITTED, PHANTOM_UNKNOWN
from tieout.engine.classes.rule import MessageRule
from tieout.engine.classes.settled import (
    COMPACTED,
    DEAD_LETTERED,
    DELIVERED,
    FILTERED,
    IN_FLIGHT,
    LATE,
    MISROUTED,
    NOT_SENT,
    RECOVERED,
    UNVERIFIABLE,
)

MESSAGE_RULES: Final[tuple[MessageRule, ...]] = (
    PHANTOM_UNKNOWN,
    PHANTOM_ABORTED,
    PHANTOM_UNCOMMITTED,
    LOST,
    CORRUPTED_VALUE,
    CORRUPTED_KEY,
    CORRUPTED_HEADER,
    CORRUPTED_TIMESTAMP,
    OUTPUT_DUPLICATE,
    LOG_DUPLICATE,
    REDELIVERY,
    MISROUTED,
    LATE,
    IN_FLIGHT,
    DEAD_LETTERED,
    FILTERED,
    COMPACTED,
    UNVERIFIABLE,
    RECOVERED,
    DELIVERED,
    NOT_SENT,
)
"""Every class a message can have, in the order in which the first that holds becomes its primary class."""

"""What can stop the stack from running; every message is one line that says what to do."""

from __future__ import annotations

from tieout.errors import TieoutError


class StackError(TieoutError):
    """The stack cannot be started or used."""

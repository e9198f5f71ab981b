"""Errors that stop the stack; every message is one line with the remedy."""

from __future__ import annotations

from tieout.errors import TieoutError


class StackError(TieoutError):
    """The stack cannot be started or used."""

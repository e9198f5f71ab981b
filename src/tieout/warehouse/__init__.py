"""Reads other people's PostgreSQL: one consistent snapshot, and errors without the password.

The imports of a copying process are light, so that it starts in a tenth of a second: nothing here imports the
contracts.
"""

from __future__ import annotations

from tieout.warehouse.copying import Copied, copied
from tieout.warehouse.sessions import relation, snapshot

__all__ = ["Copied", "copied", "relation", "snapshot"]

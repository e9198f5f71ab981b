"""The linter: compares a pipeline's settings with the guarantee of its contract.

`findings` needs a contract only; `contradictions` compares declared settings with a statement's incidents.
"""

from __future__ import annotations

from tieout.linting.contradicting import contradictions
from tieout.linting.finding import Finding
from tieout.linting.linting import findings

__all__ = ["Finding", "contradictions", "findings"]

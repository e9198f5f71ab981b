"""The linter: what a pipeline's settings let happen that its contract excludes.

`findings` needs a contract alone; `contradictions` holds declared settings against what a statement found.
"""

from __future__ import annotations

from tieout.linting.contradicting import contradictions
from tieout.linting.finding import Finding
from tieout.linting.linting import findings

__all__ = ["Finding", "contradictions", "findings"]

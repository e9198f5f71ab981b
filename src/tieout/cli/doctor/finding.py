"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_WIDEST: Final = 18


@dataclass(frozen=True)
class Finding:
    """A requirement of a run: whether it is met, what was found, and the remedy if it is not."""

    subject: str
    is_there: bool
    found: str
    remedy: str = ""

    def line(self) -> str:
        """Return the finding in one line.

        >>> Finding("pool", False, "no pool spark", "airflow pools set spark 2 Spark").line()
        'missing  pool                no pool spark: airflow pools set spark 2 Spark'
        """
        state = "ok" if self.is_there else "missing"
        return f"{state:<8} {self.subject:<{_WIDEST}}  {': '.join(part for part in (self.found, self.remedy) if part)}"

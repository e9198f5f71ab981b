"""Files that are no modules, and come along with Tieout: in the installed package, or in the checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tieout.errors import InstallationError

DAGS: Final = "dags"
SPARK_APPS: Final = "spark_apps"
EXPECTATIONS: Final = "expectations"


def shipped(*names: str) -> Path:
    """Return the path of a file or folder, such as `shipped(SPARK_APPS, "reconcile.py")`.

    Raises:
        InstallationError: where the installation lacks it.
    """
    here = Path(__file__).resolve().parent
    candidates = tuple(folder.joinpath(*names) for folder in (here / "_shipped", here.parents[1]))
    for path in candidates:
        if path.exists():
            return path
    searched = " or ".join(map(str, candidates))
    raise InstallationError(f"expected {searched}, found neither; install tieout again")

"""The folder for copies of files that Spark cannot read directly; it is deleted when the process ends."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from uuid import uuid4


def copy_path(ending: str) -> Path:
    """Return a path for a copy of a file, with the suffix `ending`."""
    return _folder() / f"{uuid4().hex}{ending}"


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="tieout-texts-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder

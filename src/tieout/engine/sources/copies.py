"""Where copies lie of files that Spark does not read as they are: in a folder of this process, which goes with it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from uuid import uuid4


def copy_path(ending: str) -> Path:
    """Return a path for a copy of a file, which ends as `ending` does."""
    return _folder() / f"{uuid4().hex}{ending}"


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="tieout-texts-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder

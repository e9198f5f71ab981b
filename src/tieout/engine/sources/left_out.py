"""Names of files and folders that readers skip, and what such a name says about the files next to it.

Spark skips names that begin with `_` or `.`, and so do the readers. Names that begin with `.` are hidden for every
program. What begins with `_` may be evidence, so a note names it, unless it is known to be none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tieout.engine.unlisted import answer

WRITING: Final = "_temporary"
"""The folder in which a job of Hadoop or Spark writes; the job takes it away once its output is complete."""
STILL_WRITTEN: Final = (
    "a job is writing here, or died while it was: the files beside it need not be all; wait for it, or remove "
    "the folder"
)
SKIPPED: Final = (
    "a name that begins with _ is passed over in a folder; rename it if it is evidence, else take it away, or name the "
    "files in path, such as FOLDER/[!_]*"
)
_KNOWN: Final = re.compile(
    r"_SUCCESS|_(started|committed)_.+|_(common_)?metadata|_spark_metadata|_delta_log|_change_data"
    r"|_symlink_format_manifest|_checkpoints?|.+\.crc"
)
"""Markers of jobs, and metadata of tables, queries and file systems."""


def is_skipped(name: str) -> bool:
    """Return whether a file or folder of this name may hold evidence that a reader of its folder passes over.

    >>> [is_skipped(name) for name in ("_late.jsonl", "_SUCCESS", "_committed_17", ".a.jsonl.crc", "late.jsonl")]
    [True, False, False, False, False]
    """
    return name.startswith("_") and _KNOWN.fullmatch(name) is None


def skipped_in(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield what a reader of the folder passes over although something is in it, each with the fault that it is."""
    for above, folders, names in os.walk(folder):
        for name in (*names, *folders):
            path = Path(above) / name
            if name == WRITING:
                yield path, STILL_WRITTEN
            elif is_skipped(name) and _is_filled(path):
                yield path, SKIPPED
        folders[:] = [name for name in folders if not name.startswith(("_", "."))]


def unfinished_writes(files: Iterable[Path], root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the folders, in those of the files up to the root, in which a job is still writing."""
    folders = {folder for file in files for folder in file.parents if folder.is_relative_to(root)}
    for folder in sorted(folders):
        if answer((folder / WRITING).is_dir, otherwise=False):
            yield folder / WRITING, STILL_WRITTEN


def _is_filled(path: Path) -> bool:
    """Return whether there is a byte in a file, or in a file of a folder."""
    if not answer(path.is_dir, otherwise=False):
        return answer(lambda: path.stat().st_size > 0, otherwise=False)
    return any(_is_filled(Path(above) / name) for above, _, names in os.walk(path) for name in names)

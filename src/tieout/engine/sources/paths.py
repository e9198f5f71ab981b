"""Paths of files as contracts, Spark and people write them, and how one is turned into another."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_REMOTE: Final = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]+://")


def is_remote(path: str) -> bool:
    """Return whether only Hadoop can read the path.

    >>> is_remote("s3a://bucket/orders"), is_remote("/data/orders")
    (True, False)
    """
    return _REMOTE.match(path) is not None


def local_path(uri: str) -> Path:
    """Return the file that a `file:` URI names.

    >>> local_path("file:///tmp/a%20b.jsonl").as_posix()
    '/tmp/a b.jsonl'
    """
    return Path(unquote(urlsplit(uri).path)) if uri.startswith("file:") else Path(uri)


def name_of(path: Path, base_dir: Path) -> str:
    r"""Return the path for messages: relative to the contract's folder if it is below that.

    Bytes that are no text are escaped, as in `a\udcff.jsonl`, for a statement is text.
    """
    full, base = path.absolute(), base_dir.absolute()
    name = str(full.relative_to(base)) if full.is_relative_to(base) else str(full)
    return name.encode("utf-8", "backslashreplace").decode()


def spark_path(path: str) -> str:
    r"""Return the path with the characters escaped that Hadoop would take for wildcards.

    >>> spark_path("/tmp/a[1].jsonl")
    '/tmp/a\\[1\\].jsonl'
    """
    return re.sub(r"([\\*?{}\[\]])", r"\\\1", path)

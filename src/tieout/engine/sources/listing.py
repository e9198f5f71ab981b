"""Compares the files that Spark reads with those that were digested: a digest names exactly what rows came from.

Spark lists the files itself, by rules that settings, path filters of Hadoop and the names of files change. It
leaves files out silently.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from pyspark.sql import DataFrame

from tieout.engine.sources.inputs import Input
from tieout.errors import SourceError

_SHOWN: Final = 3
_LOCAL: Final = re.compile(r"^(?:file:)?/+")


def of_these_files(rows: DataFrame, files: Sequence[Input]) -> DataFrame:
    """Return the rows of a reader, unchanged, where Spark reads them from these files and no others.

    Raises:
        SourceError: naming the files of one list that are not in the other. One without a byte has no row to miss.
    """
    read = {_key(uri) for uri in rows.inputFiles()}
    digested = {_key(file.copy or file.path, is_uri=False): file for file in files}
    unread = sorted(file.name for key, file in digested.items() if key not in read and file.size)
    others = sorted(read - digested.keys())
    if unread:
        raise SourceError(
            f"{_named(unread)}: expected Spark to read every file that was digested, found that it leaves this out; "
            "look for path filters and spark.sql.files settings in Spark's and Hadoop's configuration"
        )
    if others:
        raise SourceError(
            f"{_named(others)}: expected Spark to read the files that were digested, found one more; "
            "run again when nobody writes into the folder"
        )
    return rows


def _key(path: str, *, is_uri: bool = True) -> str:
    """Return a file's path in the form in which Spark's list and ours are compared.

    >>> _key("file:///tmp/a%20b") == _key("/tmp/a b", is_uri=False), _key("s3a://b/a%2525")
    (True, 's3a://b/a%25')
    """
    return _LOCAL.sub("/", unquote(path) if is_uri else path)


def _named(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")

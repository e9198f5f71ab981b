"""Recognises folders that list their own valid files, by names alone and without Spark.

These are tables, and the folders that a file sink of Structured Streaming writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

LOGS: Final = {"delta": "_delta_log", "iceberg": "metadata"}
"""Per format, the folder that marks its parent as a table."""
METADATA: Final = ".metadata.json"
"""The suffix of the files in which Iceberg describes one state of a table."""

SINK_MANIFEST: Final = "_spark_metadata"
"""The folder, below that of a file sink of Structured Streaming, that lists the sink's output files."""


def is_sink_folder(folder: Path) -> bool:
    """Return whether a file sink of Structured Streaming wrote the local folder."""
    return (folder / SINK_MANIFEST).is_dir()


def table_format(folder: Path) -> str | None:
    """Return the format of the table in a local folder, or None where it is no table."""
    if (folder / LOGS["delta"]).is_dir():
        return "delta"
    return "iceberg" if any((folder / LOGS["iceberg"]).glob(f"*{METADATA}")) else None

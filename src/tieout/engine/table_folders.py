"""Which folders say themselves which of their files count, told by names alone: without Spark, for who looks before.

Tables do, and the folders that a file sink of Structured Streaming writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

LOGS: Final = {"delta": "_delta_log", "iceberg": "metadata"}
"""Per format the folder in a table's folder that makes it one."""
METADATA: Final = ".metadata.json"
"""How the file is called in which Iceberg describes one state of a table."""

SINK_MANIFEST: Final = "_spark_metadata"
"""The folder in the folder of a file sink of Structured Streaming that names the files which are its output."""


def is_sink_folder(folder: Path) -> bool:
    """Return whether a file sink of Structured Streaming wrote the local folder."""
    return (folder / SINK_MANIFEST).is_dir()


def table_format(folder: Path) -> str | None:
    """Return of which format the table in a local folder is, or None where it is none."""
    if (folder / LOGS["delta"]).is_dir():
        return "delta"
    return "iceberg" if any((folder / LOGS["iceberg"]).glob(f"*{METADATA}")) else None

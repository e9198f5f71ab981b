"""Which folders are tables, told by their names alone: without Spark, for who looks before it is started."""

from __future__ import annotations

from pathlib import Path
from typing import Final

LOGS: Final = {"delta": "_delta_log", "iceberg": "metadata"}
"""Per format the folder in a table's folder that makes it one."""
METADATA: Final = ".metadata.json"
"""How the file is called in which Iceberg describes one state of a table."""


def table_format(folder: Path) -> str | None:
    """Return of which format the table in a local folder is, or None where it is none."""
    if (folder / LOGS["delta"]).is_dir():
        return "delta"
    return "iceberg" if any((folder / LOGS["iceberg"]).glob(f"*{METADATA}")) else None

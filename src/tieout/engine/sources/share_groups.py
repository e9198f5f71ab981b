"""Marks readings of a group's positions where the artefact shows the group to be a share group (KIP-932)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pyspark.sql import functions as F

from tieout.engine.kafka.share_groups import MAY_SHOW, NOTE, shows_share_group
from tieout.engine.sources.discovery import inputs_of
from tieout.engine.sources.lines import lines_of
from tieout.engine.sources.source import BLOCK, FILE, ROW, TEXT, Reading, Request

_LINES: Final = 100_000
"""The most lines examined for a group's type; a table or a listing has fewer."""


def as_share_group_if_shown(
    reading: Reading, request: Request, paths: tuple[str, ...], group: str | None
) -> Reading:
    """Return the reading of a tool's text, marked with a note where the text shows a share group."""
    inputs = inputs_of(request.spark, paths, request.base_dir, "text")
    if group is None or not inputs.readable:
        return reading
    may_show = F.col(TEXT).rlike(MAY_SHOW) | F.startswith(F.ltrim(TEXT), F.lit(group))
    lines = lines_of(request.spark, inputs.readable).where(may_show).orderBy(FILE, BLOCK, ROW).limit(_LINES)
    is_shown = shows_share_group(
        (row[TEXT] for row in lines.select(TEXT, FILE, BLOCK, ROW).toLocalIterator()), group
    )
    return as_share_group(reading, group) if is_shown else reading


def as_share_group(reading: Reading, group: str) -> Reading:
    """Return the reading marked as a share group's, with a note that says so."""
    return replace(reading, is_share_group=True, notes=(*reading.notes, NOTE.format(group)))

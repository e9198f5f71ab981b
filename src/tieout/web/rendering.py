"""Templates: everything is escaped, an unknown name is an error, and ids are shown as one visible line."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from tieout.contracts import shown_position
from tieout.contracts.durations import format_duration
from tieout.model import Verdict, Window
from tieout.reporting.alerts import printable
from tieout.reporting.page import FILTERS
from tieout.reporting.sheet import place_of
from tieout.store.views import counted_verdict
from tieout.web.evidence import sides_of
from tieout.web.periods import Period

MEDIA_TYPES: Final = MappingProxyType({"tieout.css": "text/css", "tieout.js": "text/javascript"})
"""The files that the pages load, all from this package."""

MISSING: Final = "MISSING"
STATES: Final = (
    Verdict.BROKEN.value,
    Verdict.UNKNOWN.value,
    MISSING,
    Verdict.PENDING.value,
    Verdict.KEPT.value,
)
"""The states of a window or a bucket, the worst first."""

SIGNS: Final = MappingProxyType(
    {
        Verdict.KEPT.value: "✓",
        Verdict.BROKEN.value: "✗",
        Verdict.PENDING.value: "…",
        Verdict.UNKNOWN.value: "?",
        MISSING: "∅",
    }
)
"""What tells the states apart besides their colours."""


def render(template: str, **values: Any) -> str:
    """Return a template's text."""
    return environment().get_template(template).render(**values)


@cache
def environment() -> Environment:
    """Return the templates' environment."""
    made = Environment(
        loader=PackageLoader("tieout.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        **FILTERS,
        "moment": moment,
        "period": period,
        "number": number,
        "iso": iso,
        "span": span,
        "tojson_text": json.dumps,
    }
    made.globals |= {
        "place": place,
        "shown": shown_position,
        "counted": counted_verdict,
        "sides_of": sides_of,
        "signs": SIGNS,
        "states": STATES,
        "periods": tuple(Period),
        "asset_version": asset_version(),
    }
    return made


@cache
def asset(name: str) -> bytes:
    """Return a file of `MEDIA_TYPES`."""
    return files("tieout.web").joinpath("static").joinpath(name).read_bytes()


@cache
def asset_version() -> str:
    """Return what changes with the files that the pages load, so that browsers may keep them for ever."""
    return hashlib.sha256(b"".join(asset(name) for name in MEDIA_TYPES)).hexdigest()[:12]


def moment(value: datetime | None) -> str:
    """Return a UTC time for people, without the seconds where there are none.

    >>> from datetime import UTC
    >>> moment(datetime(2026, 11, 20, 10, tzinfo=UTC))
    '2026-11-20 10:00'
    """
    if value is None:
        return "-"
    has_seconds = value.second or value.microsecond
    return value.strftime("%Y-%m-%d %H:%M:%S" if has_seconds else "%Y-%m-%d %H:%M")


def period(value: Window) -> str:
    """Return a window for people; its end without the day where that is the start's."""
    end = moment(value.end)
    if value.start.date() == value.end.date():
        end = end[11:]
    return f"{moment(value.start)} to {end}"


def iso(value: datetime) -> str:
    """Return a UTC time in the form of addresses.

    >>> from datetime import UTC
    >>> iso(datetime(2026, 11, 20, 10, tzinfo=UTC))
    '2026-11-20T10:00:00Z'
    """
    return value.isoformat().replace("+00:00", "Z")


def number(value: float | None) -> str:
    """Return a number with its thousands apart, or a dash.

    >>> number(1234567), number(None), number(0.00012345)
    ('1,234,567', '-', '0.000123')
    """
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"


def place(topic: str | None, partition: int | None) -> str:
    """Return what a partition is called, as one visible line."""
    return printable(place_of(topic, partition))


def span(value: timedelta) -> str:
    """Return a duration in its two largest units.

    >>> span(timedelta(days=2, hours=3, minutes=4))
    '2d3h'
    """
    days, hours = timedelta(days=value.days), timedelta(hours=value.seconds // 3600)
    if days:
        return format_duration(days + hours)
    return format_duration(timedelta(minutes=value.seconds // 60) if value >= timedelta(minutes=1) else value)

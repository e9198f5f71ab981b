"""The kinds of values in a contract's fields, with their checks, canonical texts and editor schemas."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
)

from tieout.contracts.cron import check_cron
from tieout.contracts.durations import LONGEST, PATTERN, format_duration, parse_duration
from tieout.contracts.times import format_time, parse_time

_CONNECTION: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,199}")


class Model(BaseModel):
    """A frozen value that refuses unknown fields; its errors never print the input, a possible secret."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, validate_by_name=True)


def _duration(value: object) -> object:
    if isinstance(value, timedelta):
        if not timedelta(0) <= value <= LONGEST:
            raise ValueError("expected a duration from 0 to a hundred years")
        return value
    if isinstance(value, str):
        return parse_duration(value)
    raise ValueError(f"expected a duration with its unit such as 15m, found {value!r}")


def _time(value: object) -> object:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("expected a time with its zone")
        return value.astimezone(UTC)
    if isinstance(value, str):
        return parse_time(value)
    raise ValueError(f"expected a time such as 2026-11-20T10:00:00Z, found {value!r}")


def _moment(value: object) -> object:
    if value == "now":
        return value
    if isinstance(value, str | datetime):
        return _time(value)
    raise ValueError(f"expected now, or a time such as 2026-11-20T10:00:00Z, found {value!r}")


def _format_moment(value: datetime | str) -> str:
    return format_time(value) if isinstance(value, datetime) else value


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise ValueError(f"expected a time zone such as UTC or Europe/Berlin, found {name!r}") from None
    return name


def _connection(name: str) -> str:
    if _CONNECTION.fullmatch(name) is None:
        raise ValueError(
            "expected the name of a connection: a letter, then letters, digits, '_', '-' or '.'; "
            "addresses and secrets belong into the connection itself (AIRFLOW_CONN_<NAME>)"
        )
    return name


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("expected some text, found none")
    return value


def _setting(value: object) -> object:
    if isinstance(value, str | int | float):
        return value
    raise ValueError("expected text, a number, or true or false")


Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    PlainSerializer(format_duration, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": PATTERN, "examples": ["15m", "1h30m", "7d"]}),
]
Instant = Annotated[
    datetime,
    BeforeValidator(_time),
    PlainSerializer(format_time, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
Moment = Annotated[
    Literal["now"] | datetime,
    BeforeValidator(_moment),
    PlainSerializer(_format_moment, return_type=str, when_used="json"),
    WithJsonSchema({"anyOf": [{"const": "now"}, {"type": "string", "format": "date-time"}]}),
]
"""A time, or `now`: the time at which a run reads its sources."""
Cron = Annotated[str, AfterValidator(check_cron)]
Zone = Annotated[str, AfterValidator(_zone)]
PartitionCount = Annotated[int, Field(ge=1, lt=1 << 31)]
ConnectionName = Annotated[str, AfterValidator(_connection)]
Text = Annotated[str, AfterValidator(_text), Field(json_schema_extra={"minLength": 1})]
Ratio = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Setting = Annotated[str | int | float | bool, BeforeValidator(_setting)]
"""The value of another system's setting, kept as written."""

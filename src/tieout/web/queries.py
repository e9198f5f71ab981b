"""The query parameters of addresses; empty form fields are ignored.

Every parameter has its type here, and nothing else reaches the store: an invalid value is an error that names the
parameter and the expected form.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from fastapi import Form, Path, Query
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from tieout.contracts.chains import PIPELINE_PATTERN
from tieout.contracts.times import FIRST, LAST, parse_time
from tieout.errors import UsageError
from tieout.model import BreakClass, Cause, Locus, Severity, Verdict
from tieout.reporting import trace
from tieout.reporting.trace import RequestedBy
from tieout.store.paging import Key
from tieout.store.storable import storable_text
from tieout.store.views import BreakFilter, IncidentFilter, WindowFilter
from tieout.web.periods import Period

_POSTGRES_INTEGER: Final = 2**31
_LONGEST_CURSOR: Final = 4_000
"""Characters of the longest key of a row: a topic and a few ids, with every character escaped."""


def _moment(value: object) -> datetime:
    try:
        moment = value if isinstance(value, datetime) else parse_time(str(value))
    except ValueError:
        moment = None
    if moment is None or not FIRST <= moment <= LAST:
        raise ValueError("expected a time between 1970 and 2100 with its zone, such as 2026-11-20T10:00:00Z")
    return moment


def _storable(value: str) -> str:
    """Return a text that PostgreSQL can hold and compare.

    Raises:
        ValueError: where it holds the character NUL, or half of a surrogate pair.
    """
    if storable_text(value) != value:
        raise ValueError("expected text without the character NUL and without halves of surrogate pairs")
    return value


def _some(value: str) -> str:
    if not value.strip():
        raise ValueError("expected some text")
    return value


Text = Annotated[str, AfterValidator(_storable)]
Moment = Annotated[datetime, BeforeValidator(_moment)]
PipelineName = Annotated[str, Path(pattern=PIPELINE_PATTERN)]
DagId = Annotated[str, Path(pattern=r"^[\w.-]+$", max_length=250)]
"""The name of any DAG in Airflow: DAGs that are no pipeline have the tab as well."""
RunId = Annotated[UUID, Path()]
IncidentId = Annotated[Text, Query(alias="id", min_length=1)]
WindowBound = Annotated[Moment, Path()]
Reason = Annotated[Text, AfterValidator(_some), Form(min_length=1, max_length=500)]
Days = Annotated[int, Form(ge=1, le=365)]


class PageQuery(BaseModel):
    """The query of an address."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _without_empty_fields(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if value}


class PeriodQuery(PageQuery):
    """The period that a page shows; without `until`, it ends now."""

    period: Period = Period.WEEK
    until: Moment | None = None


class PipelinesQuery(PeriodQuery):
    """Which pipelines are shown: those with `name` in their name, after the one named `after`."""

    name: Text = ""
    after: Text = ""


def _cursor(text: str) -> str:
    try:
        is_key = isinstance(json.loads(text), list)
    except (ValueError, RecursionError):
        is_key = False
    if not is_key:
        raise ValueError("expected the key of a row, as the link to the next page has it")
    return text


class ListQuery(PageQuery):
    """The start of a page of a list."""

    after: Annotated[str, Field(max_length=_LONGEST_CURSOR), AfterValidator(_cursor)] | None = None

    @property
    def key(self) -> Key | None:
        """The key after which the list continues; the store compares it with the fields of its order."""
        return None if self.after is None else json.loads(self.after)


class WindowsQuery(ListQuery):
    """Which windows of a pipeline."""

    start: Moment | None = None
    end: Moment | None = None
    verdict: Verdict | None = None
    sort: Literal["newest", "oldest"] = "newest"

    @property
    def row_filter(self) -> WindowFilter:
        """The filter for the store."""
        return WindowFilter(self.start, self.end, self.verdict)


class IncidentsQuery(ListQuery):
    """Which incidents of a pipeline."""

    start: Moment | None = None
    end: Moment | None = None
    class_name: BreakClass | None = Field(default=None, alias="class")
    severity: Severity | None = None
    locus: Locus | None = None
    cause: Cause | None = None
    topic: Text | None = None
    partition: int | None = Field(default=None, ge=0, lt=_POSTGRES_INTEGER)
    state: Literal["open", "resolved"] | None = None
    sort: Literal["oldest", "newest", "largest"] = "oldest"

    @property
    def row_filter(self) -> IncidentFilter:
        """The filter for the store."""
        return IncidentFilter(**self.model_dump(exclude={"after", "sort"}))


class TraceQuery(PageQuery):
    """The message to trace."""

    by: RequestedBy = RequestedBy.MESSAGE_ID
    value: Text = ""

    @property
    def trace_request(self) -> trace.TraceRequest | None:
        """The requested message, or None before a request.

        Raises:
            UsageError: where a position has another form.
        """
        if not self.value:
            return None
        if self.by is not RequestedBy.POSITION:
            return trace.TraceRequest(self.by, self.value)
        position = trace.position_of(self.value.strip())
        if position is None:
            raise UsageError(
                f"position: expected TOPIC/PARTITION/OFFSET such as orders/0/17, found {self.value}"
            )
        return trace.TraceRequest(self.by, self.value.strip(), position)


class BreaksQuery(ListQuery):
    """Which breaks of a run."""

    incident_id: Text | None = Field(default=None, alias="incident")
    class_name: BreakClass | None = Field(default=None, alias="class")
    severity: Severity | None = None
    topic: Text | None = None
    partition: int | None = Field(default=None, ge=0, lt=_POSTGRES_INTEGER)
    message_id: Text | None = Field(default=None, alias="message")
    sort: Literal["position", "class"] = "position"

    @property
    def row_filter(self) -> BreakFilter:
        """The filter for the store."""
        return BreakFilter(**self.model_dump(exclude={"after", "sort"}))

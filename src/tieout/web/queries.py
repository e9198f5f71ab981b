"""What an address may ask for; a field that a form left empty asks for nothing."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from fastapi import Path, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from tieout.errors import UsageError
from tieout.model import Severity, Verdict
from tieout.reporting import trace
from tieout.reporting.trace import AskedBy
from tieout.store.reader import Key
from tieout.store.views import BreakFilter, IncidentFilter, WindowFilter
from tieout.web.periods import Period

_POSTGRES_INTEGER: Final = 2**31
_STORABLE: Final = r"^[^\x00]+$"
"""Text that PostgreSQL can compare with something."""

PipelineName = Annotated[str, Path(pattern=_STORABLE)]
RunId = Annotated[UUID, Path()]
IncidentId = Annotated[str, Query(alias="id", pattern=_STORABLE)]


class Asked(BaseModel):
    """The query of an address."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _without_empty_fields(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {name: value.replace("\x00", "") for name, value in given.items() if value}


class Timed(Asked):
    """A piece of time to look at; without `until`, the time until now."""

    period: Period = Period.WEEK
    until: AwareDatetime | None = None


class Named(Timed):
    """Which pipelines are shown: those with `name` in their name, after the one named `after`."""

    name: str = ""
    after: str = ""


class Listed(Asked):
    """Where in a list to begin."""

    after: str | None = None

    @property
    def key(self) -> Key | None:
        """The key after which the list goes on.

        Raises:
            UsageError: where it is none.
        """
        if self.after is None:
            return None
        try:
            key = json.loads(self.after)
        except ValueError:
            key = None
        if not isinstance(key, list):
            raise UsageError("after: expected the key of a row, as the link to the next page has it")
        return key


class WindowsAsked(Listed):
    """Which windows of a pipeline."""

    start: AwareDatetime | None = None
    end: AwareDatetime | None = None
    verdict: Verdict | None = None
    sort: Literal["newest", "oldest"] = "newest"

    @property
    def wanted(self) -> WindowFilter:
        """The same for the store."""
        return WindowFilter(self.start, self.end, self.verdict)


class IncidentsAsked(Listed):
    """Which incidents of a pipeline."""

    start: AwareDatetime | None = None
    end: AwareDatetime | None = None
    class_name: str | None = Field(default=None, alias="class")
    severity: Severity | None = None
    locus: str | None = None
    cause: str | None = None
    topic: str | None = None
    partition: int | None = Field(default=None, ge=0, lt=_POSTGRES_INTEGER)
    state: Literal["open", "resolved"] | None = None
    sort: Literal["oldest", "newest", "largest"] = "oldest"

    @property
    def wanted(self) -> IncidentFilter:
        """The same for the store."""
        return IncidentFilter(**self.model_dump(exclude={"after", "sort"}))


class TraceAsked(Asked):
    """Which message is looked for."""

    by: AskedBy = AskedBy.MESSAGE_ID
    value: str = ""

    @property
    def asked(self) -> trace.Asked | None:
        """What is asked for, or None where nothing is yet.

        Raises:
            UsageError: where a position has another form.
        """
        if not self.value:
            return None
        if self.by is not AskedBy.POSITION:
            return trace.Asked(self.by, self.value)
        position = trace.position_of(self.value.strip())
        if position is None:
            raise UsageError(
                f"position: expected TOPIC/PARTITION/OFFSET such as orders/0/17, found {self.value}"
            )
        return trace.Asked(self.by, self.value.strip(), position)


class BreaksAsked(Listed):
    """Which breaks of a run."""

    incident_id: str | None = Field(default=None, alias="incident")
    class_name: str | None = Field(default=None, alias="class")
    severity: Severity | None = None
    topic: str | None = None
    partition: int | None = Field(default=None, ge=0, lt=_POSTGRES_INTEGER)
    message_id: str | None = Field(default=None, alias="message")
    sort: Literal["position", "class"] = "position"

    @property
    def wanted(self) -> BreakFilter:
        """The same for the store."""
        return BreakFilter(**self.model_dump(exclude={"after", "sort"}))

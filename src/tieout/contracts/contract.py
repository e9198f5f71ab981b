"""The contract of one pipeline, as a value: its guarantee, its evidence and its alerts.

The format is described in docs/reference/contract.md; what each field means, in docs/reference/taxonomy.md.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from tieout.contracts.chains import PIPELINE_PATTERN, After
from tieout.contracts.durations import LONGEST
from tieout.contracts.ledgers import LedgerSpec
from tieout.contracts.replay import Replay
from tieout.contracts.rules import broken_rules, rules_error
from tieout.contracts.scalars import (
    ConnectionName,
    Cron,
    Duration,
    Instant,
    Model,
    Ratio,
    Setting,
    Text,
    Zone,
)
from tieout.contracts.sources import FilesSource, cluster_topic
from tieout.model import Guarantee, Identity, Ledger, Severity, Window

_LEAST_GRACE: Final = timedelta(minutes=15)
_PRODUCER_SIDE: Final = frozenset({Ledger.PRODUCED, Ledger.LOG})


class Multiplicity(Model):
    """How many effects one message has; exactly one unless said otherwise."""

    kind: Literal["one_to_one", "one_to_many", "many_to_one"] = "one_to_one"
    effect_key: Text | None = None
    count: Annotated[int, Field(ge=1)] | None = None


class Active(Model):
    """The first and the last time that a scheduled window may begin or end at; open where not given."""

    from_: Instant | None = Field(default=None, alias="from")
    until: Instant | None = None


class Budgets(Model):
    """Up to which share a class is tolerated; None is no limit, counted and warned of above zero."""

    loss_ratio: Ratio | None = None
    duplicate_ratio: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    late_ratio: Ratio | None = None


class Settings(Model):
    """What the pipeline's own parts are declared to be set to, in their own words.

    In each part `client` names the program and its version, and `file` a file that holds its settings; `connect` is
    Kafka Connect's worker, `connector` one connector in it. docs/reference/linter.md lists what is looked at.
    """

    producer: dict[str, Setting] = Field(default={})
    consumer: dict[str, Setting] = Field(default={})
    share_group: dict[str, Setting] = Field(default={})
    broker: dict[str, Setting] = Field(default={})
    connect: dict[str, Setting] = Field(default={})
    connector: dict[str, Setting] = Field(default={})
    streams: dict[str, Setting] = Field(default={})
    flink: dict[str, Setting] = Field(default={})
    spark: dict[str, Setting] = Field(default={})
    storm: dict[str, Setting] = Field(default={})
    pulsar: dict[str, Setting] = Field(default={})
    activemq: dict[str, Setting] = Field(default={})


class Annotation(Model):
    """A known act of an operator, which makes legal what it would otherwise look like."""

    at: Instant
    kind: Literal["offset_reset"]
    group: Text | None = None
    note: str = ""


class AlertRoute(Model):
    """Who hears of a statement at or above a severity, over which connection."""

    to: Literal["webhook", "slack", "email", "pagerduty"]
    connection: ConnectionName
    at: Severity = Severity.WARNING


def _default_grace(fields: dict[str, Any]) -> timedelta:
    """Return fifteen minutes or, if longer, the time after which a message sent at the window's end is overdue."""
    deadline: timedelta = fields.get("max_latency", timedelta(0)) + fields.get("clock_skew", timedelta(0))
    return min(max(_LEAST_GRACE, deadline), LONGEST)


class Contract(Model):
    """One pipeline's contract; it names connections and never holds a secret."""

    version: Literal[1]
    pipeline: Annotated[str, Field(pattern=PIPELINE_PATTERN)]
    description: str = ""
    owner: str = ""
    after: After | None = None
    guarantee: Guarantee
    group: Text
    ordering: Literal["none", "partition", "key"] = "none"
    consumption: Literal["log", "queue"] = "log"
    redelivery: Duration | None = None
    identity: Identity = Identity.MESSAGE_ID
    id_scope: Literal["global", "session"] = "global"
    effects: Literal["delivered", "read"] = "delivered"
    multiplicity: Multiplicity = Multiplicity()
    schedule: Cron | None = None
    timezone: Zone = "UTC"
    active: Active = Active()
    windows: Literal["time", "offsets"] = "time"
    match: Literal["auto", "full"] = "auto"
    margin: Duration = timedelta(minutes=15)
    max_latency: Duration = timedelta(minutes=10)
    clock_skew: Duration = timedelta(0)
    grace: Duration = Field(default_factory=_default_grace)
    evidence_timeout: Duration = timedelta(hours=1)
    look_back: Duration = timedelta(days=7)
    budgets: Budgets = Budgets()
    ledgers: dict[Ledger, LedgerSpec]
    settings: Settings = Settings()
    annotations: tuple[Annotation, ...] = ()
    alerts: tuple[AlertRoute, ...] = ()
    replay: Replay | None = None

    _base_dir: Path = PrivateAttr(default_factory=Path)

    @model_validator(mode="after")
    def _obeys_the_rules(self) -> Self:
        problems = broken_rules(self)
        if problems:
            raise rules_error(problems)
        return self

    @property
    def base_dir(self) -> Path:
        """The folder that relative paths start at; no part of the contract's digest."""
        return self._base_dir

    @property
    def effect_ledger(self) -> Ledger:
        """The ledger whose rows are effects: `delivered` wherever it is declared, else `read`."""
        return Ledger.DELIVERED if Ledger.DELIVERED in self.ledgers else Ledger.READ

    @property
    def is_queue(self) -> bool:
        """Whether the group consumes a queue: it acknowledges single messages instead of a position."""
        return self.consumption == "queue"

    def group_of(self, ledger: Ledger) -> str:
        """Return the group whose rows of a ledger are judged: the contract's, or for `mirrored` its source's.

        A sink of Kafka Connect has the group `connect-<name>`, but its output may use another name.
        """
        source_group = (
            getattr(self.ledgers[ledger].source, "group", None) if ledger is Ledger.MIRRORED else None
        )
        return self.group if source_group is None else str(source_group)

    @property
    def connections(self) -> tuple[str, ...]:
        """The names of the connections that evidence is read over."""
        names = (getattr(spec.source, "connection", None) for spec in self.ledgers.values())
        return tuple(sorted({name for name in names if name is not None}))

    @property
    def connectors(self) -> frozenset[str]:
        """The Spark connectors needed to read the ledgers: some of `kafka`, `delta` and `iceberg`."""
        sources = [spec.source for spec in self.ledgers.values()]
        tables = {source.format for source in sources if isinstance(source, FilesSource) and source.is_table}
        clusters = {"kafka" for source in sources if cluster_topic(source) is not None}
        return frozenset(tables | clusters)

    def needed_until(self, ledger: Ledger, window: Window) -> datetime:
        """Return until when a ledger must be complete for a window to be judged (taxonomy, section 1, Coverage).

        `produced` and `log` must cover the window, the consumer's side the window and its grace.
        """
        return window.end if ledger in _PRODUCER_SIDE else window.end + self.grace

    def located_in(self, base_dir: Path) -> Contract:
        """Return the same contract with its relative paths starting at `base_dir`."""
        copy = self.model_copy()
        copy._base_dir = base_dir
        return copy

    def to_json(self) -> str:
        """Return the canonical JSON: defaults filled in, keys sorted, one text for equal contracts."""
        return self._canonical(frozenset())

    def _canonical(self, without: frozenset[str]) -> str:
        document = self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=set(without))
        return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @property
    def digest(self) -> str:
        """The SHA-256 of the canonical JSON, in hexadecimal: equal for contracts that give the same verdicts.

        `replay`, `match` and `after` are left out: they decide on repairs, on the cost of a run and on the hop that a
        loss is reported at.
        """
        return hashlib.sha256(self._canonical(frozenset({"replay", "match", "after"})).encode()).hexdigest()

    @classmethod
    def from_json(cls, text: str, base_dir: Path) -> Contract:
        """Return the contract that `to_json` wrote, with its relative paths starting at `base_dir`.

        Raises:
            pydantic.ValidationError: if the text is not a contract; such text never comes from a user.
        """
        return cls.model_validate_json(text, strict=True).located_in(base_dir)

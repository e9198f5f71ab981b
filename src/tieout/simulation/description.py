"""The description of a pipeline to simulate: one YAML file, read like a contract and refused with the same words.

The format is described in docs/reference/simulation.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, ValidationError, model_validator

from tieout.contracts.chains import PIPELINE_PATTERN
from tieout.contracts.durations import format_duration
from tieout.contracts.loading import load_model
from tieout.contracts.rules import Problem, did_you_mean, rules_error
from tieout.contracts.scalars import Duration, Instant, Model, Ratio, Text
from tieout.errors import UsageError
from tieout.model import Guarantee
from tieout.simulation.faults import FAULTS, Fault

ALL_FAULTS: Final = "all"
"""Under `faults`, the rate of every fault that is not named beside it."""

BUSIEST_PARTITION: Final = 200
"""Messages a second: the ledgers' times are whole milliseconds, and a message takes a few of them."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


class Topic(Model):
    """One topic that the pipeline reads, and what its log's cleaner may do."""

    name: Name
    partitions: Annotated[int, Field(ge=1, le=1_000)]
    cleanup_policy: Literal["delete", "compact"] = "delete"


class ProducerDescription(Model):
    """One sending application: `plain` retries may write twice, `transactional` batches appear together."""

    name: Name
    kind: Literal["plain", "idempotent", "transactional"]


class Description(Model):
    """One pipeline to simulate: what flows through it, what it promises, and what goes wrong.

    `rate` is in messages a second over all partitions; `keys` counts the distinct keys, `keyless` is the share of
    messages without one (none in a compacted topic, as in Kafka). A fault's rate is the share of batches that it
    strikes, and each chosen fault strikes at least once; `all` chooses every fault that the pipeline can have.
    """

    version: Literal[1]
    pipeline: Annotated[str, Field(pattern=PIPELINE_PATTERN)]
    guarantee: Guarantee
    ordering: Literal["none", "partition"] = "partition"
    group: Text = "loader"
    start: Instant = datetime(2025, 1, 6, 10, tzinfo=UTC)
    messages: Annotated[int, Field(ge=1, le=1_000_000_000)]
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    batch: Annotated[int, Field(ge=8, le=200)] = 20
    keys: Annotated[int, Field(ge=1)] = 1_000
    keyless: Ratio = 0.1
    max_latency: Duration = timedelta(seconds=10)
    topics: Annotated[tuple[Topic, ...], Field(min_length=1)]
    producers: Annotated[tuple[ProducerDescription, ...], Field(min_length=1)]
    consumers: Annotated[int, Field(ge=2, le=1_000)] = 4
    faults: dict[str, Ratio] = Field(default={})

    @model_validator(mode="after")
    def _obeys_the_rules(self) -> Self:
        problems = tuple(_problems(self))
        if problems:
            raise rules_error(problems)
        return self

    def with_messages(self, messages: int) -> Description:
        """Return the same description of another number of messages.

        Raises:
            UsageError: where the pipeline cannot have so many, or so few.
        """
        try:
            return Description.model_validate(self.model_dump() | {"messages": messages})
        except ValidationError as error:
            reason = error.errors()[0]["msg"].replace("Input should be", "expected a number")
            raise UsageError(f"--messages {messages}: {reason}") from error

    @property
    def partitions(self) -> int:
        """How many partitions there are over all topics."""
        return sum(topic.partitions for topic in self.topics)

    @property
    def rounds(self) -> int:
        """How many batches each partition gets."""
        return max(1, self.messages // (self.batch * self.partitions))

    @property
    def round_ms(self) -> int:
        """How many milliseconds lie between two batches of a partition."""
        return max(1, round(1000 * self.messages / self.rate / self.rounds))

    @property
    def rates(self) -> dict[str, float]:
        """The chosen faults and their rates, in the order of the catalogue; those of rate 0 are left out."""
        fallback = self.faults.get(ALL_FAULTS, 0.0)
        rates = {
            name: self.faults.get(name, fallback if self.lacks(fault) is None else 0.0)
            for name, fault in FAULTS.items()
        }
        return {name: rate for name, rate in rates.items() if rate > 0}

    def lacks(self, fault: Fault) -> str | None:
        """Return what the pipeline would need for the fault, None where it has it."""
        if not any(producer.kind in fault.producers for producer in self.producers):
            return f"a producer of kind {' or '.join(fault.producers)}"
        if fault.policy and not any(topic.cleanup_policy == fault.policy for topic in self.topics):
            return f"a topic with cleanup_policy: {fault.policy}"
        return None


def load_description(path: Path) -> Description:
    """Return the description in the file.

    Raises:
        ContractError: where the file cannot be read or holds no valid description; it names file, line and field.
    """
    return load_model(path, Description)


def _problems(description: Description) -> Iterator[Problem]:
    for field in ("topics", "producers"):
        names = [one.name for one in getattr(description, field)]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Problem((field, index, "name"), f"{name} is also the name of another; names are unique")
    busiest = BUSIEST_PARTITION * description.partitions
    if description.rate > busiest:
        yield Problem(
            ("rate",),
            f"expected at most {BUSIEST_PARTITION} messages a second and partition, which is {busiest} for "
            f"{description.partitions}; found {description.rate:g}",
        )
    longest = timedelta(milliseconds=2 * description.round_ms)
    if description.max_latency < longest:
        yield Problem(
            ("max_latency",),
            f"expected at least two rounds of {description.round_ms} ms, or a consumer that only begins anew would be "
            f"late; found {format_duration(description.max_latency)}; raise it or the rate, or lower the batch",
        )
    if description.messages < 8 * description.partitions:
        yield Problem(
            ("messages",),
            f"expected at least 8 a partition, which is {8 * description.partitions}; found {description.messages}",
        )
    for name in description.faults:
        if name != ALL_FAULTS and name not in FAULTS:
            yield Problem(("faults", name), f"unknown fault{did_you_mean(name, (ALL_FAULTS, *FAULTS))}")
        elif name != ALL_FAULTS and (lacking := description.lacks(FAULTS[name])):
            yield Problem(("faults", name), f"cannot strike this pipeline: it takes {lacking}")

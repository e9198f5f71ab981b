"""What Airflow's tasks ask a cluster: which partitions a topic has, how far they reach, and how they are set up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec

from tieout.brokers.librdkafka import library_settings
from tieout.brokers.secrets import without_secrets
from tieout.contracts.times import epoch_millis
from tieout.errors import SourceError, SourceUnreachableError

TIMEOUT_SECONDS: Final = 20.0
"""Seconds within which a cluster answers."""

_TO_CONFIGURE: Final = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError._INVALID_ARG,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_TRANSACTION_TIMEOUT,
    }
)
_SILENT: Final = frozenset(
    {
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
    }
)


@dataclass(frozen=True)
class Cluster:
    """The cluster behind a connection; `place` is where a contract names that, for errors."""

    place: str
    settings: dict[str, str] = field(repr=False)
    noted: list[KafkaError] = field(default_factory=list, repr=False)
    """What the client noted while nobody waited for an answer: it tries again for ever where a login is refused."""

    @classmethod
    def of(cls, connection: str, place: str) -> Cluster:
        """Return the cluster of the named connection; nothing is asked yet.

        Raises:
            ConnectionNotFoundError: where the connection is not defined.
            SourceError: where it is no Kafka connection that librdkafka can use.
        """
        return cls(place, library_settings(connection, place))

    def client_settings(self) -> dict[str, Any]:
        """Return what every client of this cluster is made with."""
        return {**self.settings, "error_cb": self.noted.append, "log_level": 0}

    def partitions(self, topic: str) -> tuple[int, ...]:
        """Return the numbers of the topic's partitions, none where the cluster has no such topic.

        Raises:
            SourceUnreachableError: where no broker answers.
            SourceError: where the brokers refuse; without a secret.
        """
        return tuple(sorted(partition.id for partition in self._partitions(topic)))

    def ends(self, topic: str, numbers: Iterable[int], *, is_stable: bool) -> dict[int, int]:
        """Return each partition's next offset, or with `is_stable` its last stable offset.

        Raises:
            SourceUnreachableError: where no broker answers.
            SourceError: where the brokers refuse.
        """
        return self._offsets(topic, numbers, OffsetSpec.latest(), is_stable=is_stable)

    def since(self, topic: str, numbers: Iterable[int], when: datetime) -> dict[int, int | None]:
        """Return each partition's first offset whose record is of that time or later, None where there is none.

        Raises:
            SourceUnreachableError: where no broker answers.
            SourceError: where the brokers refuse.
        """
        since = OffsetSpec.for_timestamp(epoch_millis(when))
        found = self._offsets(topic, numbers, since, is_stable=False)
        return {number: None if offset < 0 else offset for number, offset in found.items()}

    def topic_settings(self, topic: str) -> dict[str, str]:
        """Return the settings that hold for the topic, its own and the brokers', and `replication.factor`.

        Raises:
            SourceUnreachableError: where no broker answers.
            SourceError: where the brokers refuse, or have no such topic.
        """
        copies = [len(partition.replicas) for partition in self._partitions(topic)]
        if not copies:
            raise SourceError(
                f"{self.place}.connection: {self.settings['bootstrap.servers']}: the cluster has no topic {topic}"
            )
        return {**self._described(ConfigResource.Type.TOPIC, topic), "replication.factor": str(min(copies))}

    def broker_settings(self) -> dict[str, str]:
        """Return the settings of one of the brokers, without those that it keeps secret.

        Raises:
            SourceUnreachableError: where no broker answers.
            SourceError: where the brokers refuse.
        """
        with self.translated_errors():
            nodes = (
                self._admin.describe_cluster(request_timeout=TIMEOUT_SECONDS).result(TIMEOUT_SECONDS).nodes
            )
        return self._described(ConfigResource.Type.BROKER, str(min(node.id for node in nodes)))

    @contextmanager
    def translated_errors(self) -> Iterator[None]:
        """Turn the client's exceptions into Tieout's errors.

        Raises:
            SourceUnreachableError: for what may pass.
            SourceError: for what somebody has to change.
        """
        try:
            yield
        except (KafkaException, TimeoutError) as error:
            raise self.explained(error.args[0] if isinstance(error, KafkaException) else None) from None

    def explained(self, error: KafkaError | None) -> SourceError:
        """Return an error for what the client said, or noted before; without a secret."""
        if (client := vars(self).get("_admin")) is not None:
            client.poll(0)  # has it hand over what it noted
        known = [*self.noted, *([error] if isinstance(error, KafkaError) else [])]
        refused = next((one for one in known if one.code() in _TO_CONFIGURE), None)
        at = f"{self.place}.connection: {self.settings['bootstrap.servers']}"
        if refused is not None:
            return SourceError(f"{at}: {without_secrets(refused.str(), self.settings)}")
        if not known:
            return SourceUnreachableError(
                f"{at} does not answer: nothing within {TIMEOUT_SECONDS:.0f} seconds"
            )
        answer = " does not answer" if known[-1].code() in _SILENT else ""
        return SourceUnreachableError(f"{at}{answer}: {without_secrets(known[-1].str(), self.settings)}")

    def _partitions(self, topic: str) -> Sequence[Any]:
        """Return what the cluster says of the topic's partitions, nothing where it has no such topic."""
        with self.translated_errors():
            futures = self._admin.describe_topics(TopicCollection([topic]), request_timeout=TIMEOUT_SECONDS)
            try:
                found: Sequence[Any] = futures[topic].result(TIMEOUT_SECONDS).partitions
            except KafkaException as error:
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    return ()
                raise
        return found

    def _described(self, kind: Any, name: str) -> dict[str, str]:
        with self.translated_errors():
            resource = ConfigResource(kind, name)
            futures = self._admin.describe_configs([resource], request_timeout=TIMEOUT_SECONDS)
            found = futures[resource].result(TIMEOUT_SECONDS)
        return {
            key: one.value for key, one in found.items() if one.value is not None and not one.is_sensitive
        }

    def _offsets(
        self, topic: str, numbers: Iterable[int], spec: OffsetSpec, *, is_stable: bool
    ) -> dict[int, int]:
        isolation = IsolationLevel.READ_COMMITTED if is_stable else IsolationLevel.READ_UNCOMMITTED
        partitions = {TopicPartition(topic, number): spec for number in numbers}
        if not partitions:
            return {}
        with self.translated_errors():
            futures: dict[TopicPartition, Future[Any]] = self._admin.list_offsets(
                partitions, isolation_level=isolation, request_timeout=TIMEOUT_SECONDS
            )
            return {
                place.partition: int(answer.result(TIMEOUT_SECONDS).offset)
                for place, answer in futures.items()
            }

    @cached_property
    def _admin(self) -> AdminClient:
        """The client, one for all questions: what one is still asked is dropped with it.

        Raises:
            SourceError: where a setting is unknown to it, or cannot be used.
        """
        try:
            return AdminClient(self.client_settings())
        except KafkaException as error:
            raise self.explained(error.args[0]) from None

"""Contracts: one YAML file a pipeline, read into frozen values that name everything and hold no secret.

The format is described in docs/reference/contract.md.
"""

from __future__ import annotations

from tieout.contracts.chains import After
from tieout.contracts.contract import (
    Active,
    AlertRoute,
    Annotation,
    Budgets,
    Contract,
    Multiplicity,
    Settings,
)
from tieout.contracts.ledgers import CoverageSpec, LedgerSpec, Tolerance
from tieout.contracts.loading import load_contract, load_contracts, unknown_predecessors
from tieout.contracts.positions import position_form, position_in, shown_position, stored_position_form
from tieout.contracts.replay import (
    ID_PREFIX,
    IDEMPOTENCE_HEADER,
    OWN_TOPIC,
    Replay,
    ReplayOutput,
    ReplayTarget,
)
from tieout.contracts.sources import (
    OFFSETS_TOPIC,
    ConnectFilesSource,
    ConnectOffsetsSource,
    FilesSource,
    FlinkCheckpointsSource,
    FlinkPreparedSource,
    JdbcSource,
    KafkaConsumerGroupsSource,
    KafkaDumpLogSource,
    KafkaOffsetsSource,
    KafkaSegmentsSource,
    KafkaSource,
    KahaDbSource,
    PulsarCursorSource,
    PulsarSource,
    Source,
    SparkCheckpointSource,
    SparkFilesSource,
    TridentSource,
    VerifiableConsumerSource,
    VerifiableProducerSource,
    cluster_topic,
)

__all__ = [
    "IDEMPOTENCE_HEADER",
    "ID_PREFIX",
    "OFFSETS_TOPIC",
    "OWN_TOPIC",
    "Active",
    "After",
    "AlertRoute",
    "Annotation",
    "Budgets",
    "ConnectFilesSource",
    "ConnectOffsetsSource",
    "Contract",
    "CoverageSpec",
    "FilesSource",
    "FlinkCheckpointsSource",
    "FlinkPreparedSource",
    "JdbcSource",
    "KafkaConsumerGroupsSource",
    "KafkaDumpLogSource",
    "KafkaOffsetsSource",
    "KafkaSegmentsSource",
    "KafkaSource",
    "KahaDbSource",
    "LedgerSpec",
    "Multiplicity",
    "PulsarCursorSource",
    "PulsarSource",
    "Replay",
    "ReplayOutput",
    "ReplayTarget",
    "Settings",
    "Source",
    "SparkCheckpointSource",
    "SparkFilesSource",
    "Tolerance",
    "TridentSource",
    "VerifiableConsumerSource",
    "VerifiableProducerSource",
    "cluster_topic",
    "load_contract",
    "load_contracts",
    "position_form",
    "position_in",
    "shown_position",
    "stored_position_form",
    "unknown_predecessors",
]

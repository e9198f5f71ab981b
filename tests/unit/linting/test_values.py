"""Values that a program does not take, and those that somebody else fills in: told, and never an all-clear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Consumer, KafkaException, Producer
from tests.unit.linting.contracts import contract

from tieout.linting import Finding, findings
from tieout.linting.defaults import DEFAULTS
from tieout.linting.findings_text import findings_text
from tieout.linting.pipeline import SECTIONS, Part, Pipeline
from tieout.linting.rules import RULES
from tieout.linting.rules.output import OWN_VALUES, OWN_VALUES_OF_PARTS
from tieout.linting.values import CHECKED_SETTINGS, refusal
from tieout.linting.versions import ALL
from tieout.model import Severity

SILENT = {
    "producer": "client: java-4.0, acks: all, enable.idempotence: true, transactional.id: a",
    "consumer": "client: java-4.0, enable.auto.commit: false, isolation.level: read_committed, "
    "auto.offset.reset: none, commits: with the output",
    "broker": "client: kafka-4.0, replication.factor: 3, min.insync.replicas: 2",
}

REFUSED = [
    ("consumer", "client: librdkafka-2.3, isolation.level: read_commited"),
    ("consumer", "client: confluent-kafka-go-1.5, auto.offset.reset: lastest"),
    ("consumer", "client: confluent-kafka-dotnet-2.3, AutoOffsetReset: Lastest"),
    ("consumer", "client: librdkafka-2.3, auto.offset.reset: none"),
    ("consumer", "client: java-4.0, auto.offset.reset: smallest"),
    ("consumer", "client: java-3.9, 'auto.offset.reset': 'by_duration:PT1H'"),
    ("consumer", "client: java-4.0, auto.offset.reset: LATEST"),
    ("consumer", "client: java-4.0, isolation.level: READ_COMMITTED"),
    ("consumer", "client: java-4.0, enable.auto.commit: ture"),
    ("consumer", "client: java-4.0, enable.auto.commit: 1"),
    ("consumer", "client: kafka-python-2.2, isolation_level: read-committed"),
    ("consumer", "isolation.level: commited"),
    ("producer", "client: java-4.0, acks: al"),
    ("producer", "client: java-4.0, acks: 2"),
    ("producer", "client: java-4.0, retries: many"),
    ("producer", "client: java-4.0, retries: 3.5"),
    ("producer", "client: java-4.0, transaction.timeout.ms: 60s"),
    ("producer", "client: java-4.0, max.in.flight.requests.per.connection: 0"),
    ("producer", "client: librdkafka-2.3, request.required.acks: every"),
    ("broker", "min.insync.replicas: two"),
    ("broker", "unclean.leader.election.enable: 'no'"),
    ("broker", "log.retention.hours: 7d"),
    ("broker", "default.replication.factor: three"),
    ("connect", "exactly.once.source.support: enable"),
    ("connect", "producer.enable.idempotence: 'yes'"),
    ("connector", "topics: a, errors.tolerance: ALL"),
    ("connector", "topics: a, consumer.override.isolation.level: read-committed"),
    ("streams", "processing.guarantee: exactly-once-v2"),
    ("flink", "execution.checkpointing.mode: EXACTLY-ONCE"),
    ("flink", "sink.delivery-guarantee: exactly once"),
    ("flink", "execution.checkpointing.interval: often"),
    ("flink", "execution.checkpointing.externalized-checkpoint-retention: RETAIN"),
    ("spark", "failOnDataLoss: 'no'"),
    ("spark", "startingOffsets: lates"),
    ("spark", "kafka.isolation.level: readcommitted"),
    ("storm", "processing.guarantee: EXACTLY_ONCE"),
    ("storm", "topology.acker.executors: some"),
    ("pulsar", "subscriptionType: Sharde"),
    ("pulsar", "brokerDeduplicationEnabled: enabled"),
    ("pulsar", "sendTimeoutMs: 30s"),
    ("activemq", "persistent: persistent"),
    ("activemq", "journalDiskSyncStrategy: sometimes"),
]
TAKEN = [
    ("consumer", "client: librdkafka-2.3, isolation.level: READ_COMMITTED, auto.offset.reset: Earliest"),
    (
        "consumer",
        "client: confluent-kafka-dotnet-2.3, AutoOffsetReset: Latest, IsolationLevel: ReadCommitted",
    ),
    ("consumer", "client: java-4.0, 'auto.offset.reset': 'by_duration:PT1H'"),
    ("consumer", "client: java-4.0, enable.auto.commit: 'FALSE'"),
    ("consumer", "auto.offset.reset: smallest"),
    ("producer", "client: librdkafka-2.3, acks: 2, retries: 5, enable.idempotence: t"),
    ("producer", "client: kafka-python-2.2, retries: inf, acks: all"),
    ("broker", "retention.ms: -1, unclean.leader.election.enable: 'False'"),
    ("connect", "exactly.once.source.support: ENABLED"),
    ("streams", "processing.guarantee: exactly_once_v2, replication.factor: -1"),
    ("flink", "execution.checkpointing.mode: at_least_once, execution.checkpointing.interval: PT10M"),
    ("flink", "execution.checkpointing.interval: 60000, sink.delivery-guarantee: EXACTLY_ONCE"),
    ("spark", 'startingOffsets: \'{"orders": {"0": 23}}\''),
    ("storm", "processing.guarantee: at_least_once"),
    ("pulsar", "subscriptionType: key_shared, journalSyncData: 'no'"),
]
PLACEHOLDERS = (
    "${RESET}", "${RESET:latest}", "${env:RESET}", "@reset@", "{{ .Values.reset }}", "{{ reset | default('x') }}",
    "{% if x %}latest{% endif %}", "$(RESET)", "%(reset)s", "<reset>", "<latest|earliest>", "#{reset}", "#{reset}#",
    "$RESET", "%RESET%", "[[reset]]", "__RESET__", "{reset}", "<%= reset %>", "%{reset}",
)  # fmt: skip


def lint(section: str, settings: str, guarantee: str = "exactly_once") -> list[Finding]:
    """Return the findings about a part written as a mapping of YAML."""
    return list(findings(contract({section: yaml.safe_load(f"{{{settings}}}")}, guarantee)))


@pytest.mark.parametrize(("section", "settings"), REFUSED)
def test_a_value_outside_what_a_program_takes_is_critical(section: str, settings: str) -> None:
    """The program would not start, or go by something else: what the value leads to is not said."""
    found = [finding for finding in lint(section, settings) if finding.rule == "value_unknown"]

    assert len(found) == 1
    assert found[0].severity is Severity.CRITICAL
    assert found[0].value is not None
    assert found[0].advice
    assert not [f for f in lint(section, settings) if f.setting == found[0].setting and f.classes]


@pytest.mark.parametrize(("section", "settings"), TAKEN)
def test_a_value_that_a_program_takes_is_not_reported(section: str, settings: str) -> None:
    """Cases, other words for the same, and what only some versions know."""
    assert "value_unknown" not in {finding.rule for finding in lint(section, settings)}


@pytest.mark.parametrize("placeholder", PLACEHOLDERS)
def test_a_placeholder_of_any_kind_is_left_open_and_said_to_be(placeholder: str) -> None:
    """Else a sound pipeline would get an all-clear for what nobody has filled in yet."""
    settings = {section: yaml.safe_load(f"{{{text}}}") for section, text in SILENT.items()}
    assert findings(contract(settings)) == ()

    settings["consumer"]["auto.offset.reset"] = placeholder
    found = {finding.rule: finding for finding in findings(contract(settings))}

    assert found["value_open"].value == placeholder
    assert "value is left open" in findings_text([found["value_open"]])
    assert not found["consumer_reset_latest"].is_certain
    assert "value_unknown" not in found


@pytest.mark.parametrize("name", ["p.properties", "p.yaml", "p.json"])
@pytest.mark.parametrize("placeholder", PLACEHOLDERS)
def test_a_placeholder_in_a_file_is_left_open(tmp_path: Path, name: str, placeholder: str) -> None:
    """Written as it is, without quotes, also where the format takes its signs for something else."""
    texts = {
        "p.properties": "bootstrap.servers=b\nacks={}\n",
        "p.yaml": "producer:\n  bootstrap.servers: b\n  acks: {} # note\n",
        "p.json": '{{"producer": {{"bootstrap.servers": "b", "acks": {}}}}}',
    }
    (tmp_path / name).write_text(texts[name].format(placeholder))
    made = contract({"producer": {"client": "java-4.0", "file": name}}, base=tmp_path)

    found = {finding.rule: finding for finding in findings(made)}

    assert found["value_open"].value == placeholder
    assert found["value_open"].setting == "acks"


def test_what_an_unknown_client_makes_of_a_value_is_left_open() -> None:
    """Its words are as little known as its defaults."""
    found = {f.rule: f for f in lint("producer", "client: sarama-1.4, acks: WaitForAll")}

    assert "no client that is known takes this value" in found["value_open"].failure
    assert not found["producer_acks"].is_certain
    assert "value_unknown" not in found


def test_a_handler_that_is_filled_in_elsewhere_may_continue() -> None:
    """Any text is a class; which one decides."""
    found = {f.rule: f for f in lint("streams", "deserialization.exception.handler: '${HANDLER}'")}

    assert "value_open" in found
    assert not found["streams_deserialization"].is_certain


def test_a_placeholder_for_a_word_of_our_own_is_left_open() -> None:
    """Whether a second writing matters is not known then."""
    found = {
        f.rule: f
        for f in lint("consumer", "client: java-4.0, commits: '${COMMITS}', enable.auto.commit: false")
    }

    assert found["value_open"].setting == "commits"
    assert not found["consumer_commits_before"].is_certain
    assert not found["consumer_commits_after"].is_certain


def test_a_name_with_a_placeholder_is_a_name() -> None:
    """Of a transactional.id only that there is one matters."""
    assert "value_open" not in {f.rule for f in lint("producer", "transactional.id: 'orders-${HOSTNAME}'")}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ('"all"', "the quotes are part of the value"),
        ("'all'", "the quotes are part of the value"),
        ("all # safest", "no comment there, but part of the value"),
        ("all // safest", "no comment there, but part of the value"),
        ('"${ACKS}"', "the quotes are part of the value"),
    ],
)
def test_what_is_written_around_a_property_is_part_of_it(tmp_path: Path, value: str, reason: str) -> None:
    """Java's properties know neither quotes nor comments behind a value."""
    (tmp_path / "p.properties").write_text(f"acks={value}\ntransactional.id={value}\n")
    made = contract({"producer": {"client": "java-4.0", "file": "p.properties"}}, base=tmp_path)

    found = {finding.rule: finding for finding in findings(made)}

    assert (found["value_unknown"].setting, found["value_unknown"].value) == ("acks", value)
    assert reason in found["value_unknown"].failure
    assert (found["value_quoted"].setting, found["value_quoted"].severity) == (
        "transactional.id",
        Severity.WARNING,
    )


def test_yaml_and_json_have_quotes_and_comments(tmp_path: Path) -> None:
    """There they are not part of a value."""
    (tmp_path / "p.yaml").write_text('producer:\n  acks: "all" # safest\n')
    made = contract({"producer": {"client": "java-4.0", "file": "p.yaml"}}, base=tmp_path)

    assert not {"value_unknown", "value_quoted"} & {finding.rule for finding in findings(made)}


@pytest.mark.parametrize(
    ("setting", "values"),
    [
        ("acks", ("all", "ALL", "-1", "0", "1", "2", "1000", "1001", "al", '"all"', "")),
        ("retries", ("5", "0", "-1", "a", "", "inf")),
        ("enable.idempotence", ("true", "TRUE", "t", "1", "yes", "on", "f", "ture", "")),
        ("isolation.level", ("read_committed", "READ_COMMITTED", "read-committed", "read_commited", "1", "")),
        (
            "auto.offset.reset",
            ("latest", "LATEST", "none", "error", "smallest", "end", "beginning", "lastest", ""),
        ),
        ("enable.auto.commit", ("true", "False", "0", "yes", "ture", "")),
        ("enable.auto.offset.store", ("true", "off")),
    ],
)
def test_librdkafka_takes_what_the_linter_says_it_takes(setting: str, values: tuple[str, ...]) -> None:
    """Held against the client itself."""
    section = "producer" if setting in CHECKED_SETTINGS["producer"] else "consumer"

    for value in values:
        is_taken = refusal(section, setting, value, ("librdkafka",), ALL) is None
        assert is_taken is _is_taken_by_librdkafka(section, setting, value), (setting, value)


def _is_taken_by_librdkafka(section: str, setting: str, value: str) -> bool:
    conflicts = {"retries", "acks"}
    idempotence = {"enable.idempotence": "false"} if setting in conflicts else {}
    try:
        if section == "producer":
            Producer({**idempotence, setting: value})
        else:
            Consumer({"group.id": "g", setting: value}).close()
    except KafkaException:
        return False
    return True


@dataclass(frozen=True)
class Watched(Part):
    """A part that remembers which settings rules ask for."""

    requested: set[str] = field(default_factory=set)

    def text(self, setting: str) -> str | None:
        """Return the value, and remember that it was asked for."""
        self.requested.add(setting)
        return super().text(setting)

    def has(self, setting: str) -> bool:
        """Return whether it is set, and remember that it was asked for."""
        self.requested.add(setting)
        return super().has(setting)

    def values(self, setting: str) -> tuple[str | None, ...]:
        """Return what may apply, and remember that it was asked for."""
        self.requested.add(setting)
        return super().values(setting)


def test_every_setting_that_a_rule_asks_for_has_its_values() -> None:
    """A setting without them would be taken at any word, and not be known in a file of another style."""
    parts: Mapping[str, Watched] = {
        section: Watched(section, (section,), is_declared=True) for section in SECTIONS
    }
    for rule in RULES:
        rule.holds(Pipeline(contract({}), parts))

    for section, part in parts.items():
        own = {*OWN_VALUES, *OWN_VALUES_OF_PARTS.get(section, {})}
        assert part.requested
        assert part.requested - own <= CHECKED_SETTINGS[section].keys(), section
    for rule in RULES:
        assert rule.setting in CHECKED_SETTINGS[rule.section] or rule.setting in OWN_VALUES
    for default in DEFAULTS:
        assert any(default.setting in CHECKED_SETTINGS[section] for section in SECTIONS)

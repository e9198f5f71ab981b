"""Settings that containers take from elsewhere in a file, and several settings in one text."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.linting.contracts import lint

CONFIG_MAP = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
    "data: {RESET: latest, KAFKA_ENABLE_AUTO_COMMIT: 'false', app.properties: 'x=1'}\n---\n"
)
POD = (
    "apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {{containers: [{{env: [{}], envFrom: [{}]}}]}}\n"
)
OF_KEY = "{name: KAFKA_AUTO_OFFSET_RESET, valueFrom: {configMapKeyRef: {name: c, key: RESET}}}"


@pytest.mark.parametrize(
    ("env", "env_from", "is_latest", "is_open"),
    [
        (OF_KEY, "{configMapRef: {name: c}}", True, False),
        ("", "{prefix: KAFKA_AUTO_OFFSET_, configMapRef: {name: c}}, {configMapRef: {name: c}}", True, False),
        ("{name: KAFKA_AUTO_OFFSET_RESET, value: earliest}", "{configMapRef: {name: c}}", False, False),
        (OF_KEY, "{configMapRef: {name: another}}", True, True),
        (OF_KEY, "{configMapRef: {name: c}}, {secretRef: {name: s}}", True, True),
    ],
    ids=["key", "prefix", "overridden", "elsewhere", "secret"],
)
def test_variables_from_a_config_map_beside_it_are_a_container_s_own(
    tmp_path: Path, env: str, env_from: str, is_latest: bool, is_open: bool
) -> None:
    """What the container sets itself counts before them; what stands elsewhere, or in a secret, stays open."""
    found = lint(tmp_path, "consumer", "k.yaml", CONFIG_MAP + POD.format(env, env_from), client="java-3.9")

    assert "value_open" not in found
    assert ("settings_several" in found) is ("another" in env_from)
    assert ("consumer_reset_latest" in found) is is_latest
    assert ("file_read_as" in found) is is_open


def test_a_file_in_a_config_map_is_no_variable(tmp_path: Path) -> None:
    """It stays where it is, to be mounted, whatever else the container takes from the map."""
    text = CONFIG_MAP.replace(
        "app.properties: 'x=1'", '"consumer.properties": "auto.offset.reset=latest\\nfetch.min.bytes=1\\n"'
    )
    found = lint(
        tmp_path, "consumer", "k.yaml", text + POD.format("", "{configMapRef: {name: c}}"), client="java-3.9"
    )

    assert "ConfigMap c, consumer;" in found["settings_several"].failure


def test_of_two_config_maps_of_one_name_neither_is_taken_from(tmp_path: Path) -> None:
    """Which of two overlays applies is not said."""
    other = CONFIG_MAP.replace("latest", "earliest")
    found = lint(
        tmp_path, "consumer", "k.yaml", CONFIG_MAP + other + POD.format(OF_KEY, ""), client="java-3.9"
    )

    assert "value_open" in found


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        (
            "failover:(tcp://a:61616,tcp://b:61616)?randomize=false&jms.useAsyncSend=true",
            "activemq_async_send",
        ),
        ("vm://embedded?broker.persistent=false", "activemq_persistence"),
        ("${URL}?jms.useAsyncSend=true", "activemq_async_send"),
        ("failover:(tcp://a?jms.useAsyncSend=true)", "file_read_as"),
        ("tcp://a:61616?jms.useAsyncSend=false", None),
        ("tcp://a:61616", None),
    ],
)
def test_an_address_of_activemq_has_settings(tmp_path: Path, address: str, rule: str | None) -> None:
    """In a file, and in a variable; where its syntax is unclear, what it gives is left open."""
    given = {"client": "activemq-5.18", "acknowledgement": "client", "output": "keyed by id"}
    lines = f"spring.activemq.broker-url={address}\n"
    variable = f"SPRING_ACTIVEMQ_BROKER_URL={address}\n"
    found = [
        lint(tmp_path, "activemq", name, text, **given)
        for name, text in (("a.properties", lines), ("a.env", variable))
    ]

    for each in found:
        assert rule in each if rule else not each


@pytest.mark.parametrize(
    "line",
    [
        "export KAFKA_ACKS=1 KAFKA_ENABLE_IDEMPOTENCE='false' # safe",
        "export KAFKA_ACKS=1; export KAFKA_ENABLE_IDEMPOTENCE=false",
        'KAFKA_ACKS="1"; KAFKA_ENABLE_IDEMPOTENCE=false; export KAFKA_ACKS KAFKA_ENABLE_IDEMPOTENCE',
    ],
)
def test_a_line_of_a_shell_may_set_several_variables(tmp_path: Path, line: str) -> None:
    """In a file that a shell reads, which an `export` shows; a container takes the whole line for one value."""
    exported = lint(tmp_path, "producer", "a.env", f"{line}\n", client="java-3.9")
    plain = lint(tmp_path, "producer", "a.env", "KAFKA_ACKS=1 KAFKA_RETRIES=0\n", client="java-3.9")

    assert (exported["producer_acks"].value, "value_unknown" in exported) == ("1", False)
    assert exported["producer_idempotence"].value == "false"
    assert "value_unknown" in plain


@pytest.mark.parametrize(("word", "is_reported"), [("largest", True), ("smallest", False)])
def test_pinot_has_its_own_words_for_where_it_begins(tmp_path: Path, word: str, is_reported: bool) -> None:
    """It translates them for Kafka's client, which does not take them itself."""
    text = f'{{"streamConfigs": {{"stream.kafka.consumer.prop.auto.offset.reset": "{word}"}}}}'
    found = lint(tmp_path, "consumer", "table.json", text, client="java-3.9")

    assert "value_unknown" not in found
    assert ("consumer_reset_latest" in found) is is_reported

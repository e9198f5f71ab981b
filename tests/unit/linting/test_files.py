"""Settings in the programs' own files: read as the programs read them, and never a secret among them."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest
from tests.unit.linting.contracts import contract, lint

from tieout.errors import SettingsFileError
from tieout.linting import findings
from tieout.linting.declaring import declared
from tieout.linting.findings_text import findings_text
from tieout.linting.reading import read_settings
from tieout.model import Severity

PROPERTIES = r"""
# acks=0 is a comment
! so is acks=1
acks=all
enable.idempotence : true
  retries 5
transactional.id = orders\
    -1
client\u002eid=web\=1\tx
empty=
linger.ms
acks=1
sasl.jaas.config=org.apache.kafka.Plain required password="hunter2";
ssl.key.password=hunter2
proxy=http://me:hunter2@proxy:80
"""


def written(folder: Path, name: str, text: str) -> Path:
    """Return a new file with the text."""
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def settings_in(file: Path, section: str) -> dict[str, str]:
    """Return what the file's one place sets of the part."""
    (place,) = read_settings(file, section).places
    return dict(place.settings)


def test_properties_are_read_as_java_reads_them(tmp_path: Path) -> None:
    """Three separators, comments, lines that go on, escapes; of a key given twice the last counts."""
    assert settings_in(written(tmp_path, "p.properties", PROPERTIES), "producer") == {
        "acks": "1",
        "enable.idempotence": "true",
        "retries": "5",
        "transactional.id": "orders-1",
        "client.id": "web=1\tx",
        "empty": "",
        "linger.ms": "",
    }


@pytest.mark.parametrize(
    ("section", "name", "text", "settings"),
    [
        (
            "connector",
            "c.json",
            '{"name": "s", "config": {"topics": "a", "tasks.max": 1, "x": null, "errors.tolerance": "all"}}',
            {"name": "s", "topics": "a", "tasks.max": "1", "errors.tolerance": "all"},
        ),
        ("connector", "c.json", '{"topics": "a", "connection.password": "hunter2"}', {"topics": "a"}),
        (
            "flink",
            "config.yaml",
            "execution:\n  checkpointing:\n    interval: 10 s\n    unaligned: {enabled: true}\nlist: [1]\n",
            {
                "execution.checkpointing.interval": "10 s",
                "execution.checkpointing.unaligned.enabled": "true",
                "list": "1",
            },
        ),
        (
            "flink",
            "flink-conf.yaml",
            "rest.port: 8081\nsecurity.ssl.key-password: hunter2\n",
            {"rest.port": "8081"},
        ),
        ("spark", "spark-defaults.conf", "spark.master  yarn\n", {"spark.master": "yarn"}),
        ("producer", ".env", "export ACKS='1'\nLINGER_MS=5 # note\n", {"acks": "1", "linger.ms": "5"}),
    ],
)
def test_every_kind_of_file(
    tmp_path: Path, section: str, name: str, text: str, settings: dict[str, str]
) -> None:
    """A connector's JSON, Flink's YAML nested or flat, Spark's defaults, variables."""
    assert settings_in(written(tmp_path, name, text), section) == settings


def test_utf16_is_read(tmp_path: Path) -> None:
    """What PowerShell writes by default."""
    file = tmp_path / "p.properties"
    file.write_bytes("acks=1\r\n".encode("utf-16"))

    assert settings_in(file, "producer") == {"acks": "1"}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.ini", "acks=1", "expected a file that ends in one of .properties, .conf, .env, .json"),
        ("a.xml", "<a><b acks='1'>\n</a>", "a.xml:2: no XML of settings"),
        (
            "a.xml",
            "<!DOCTYPE a [<!ENTITY x 'hunter2'>]><a b='&x;'/>",
            "a.xml: expected no document type, found one",
        ),
        ("a.xml", "<a>" * 200, "a.xml: expected at most 20000 elements, 100 deep"),
        ("a.xml", "<a>" + "<b/>" * 20_001 + "</a>", "a.xml: expected at most 20000 elements, 100 deep"),
        ("a.xml", "acks=1", "a.xml:1: no XML of settings"),
        ("a.json", '{"password": "hunter2"', "a.json:1: not JSON"),
        ("a.json", '"hunter2"', "expected an object of settings, or a list of them, found str"),
        ("a.yaml", "password: hunter2\nb: [", "a.yaml:2: no YAML of settings"),
        ("a.yaml", "acks: hunter2\nacks: 1", "a.yaml:2: no YAML of settings: a key is given a second time"),
        ("a.yaml", "a: &a [*a]", "a.yaml: expected at most 20000 values"),
        (
            "app.conf",
            "kafka {\n  acks = hunter2\n}",
            "app.conf:1: expected a setting on each line, found a brace",
        ),
        ("none.properties", None, "none.properties: cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_read_is_reported_without_its_content(
    tmp_path: Path, name: str, text: str | None, expected: str
) -> None:
    """File, line and what was expected; never a word of what stands in it."""
    if text is not None:
        written(tmp_path, name, text)

    with pytest.raises(SettingsFileError) as caught:
        read_settings(tmp_path / name, "producer")

    assert expected in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_file_is_linted_as_if_it_stood_in_the_contract(tmp_path: Path) -> None:
    """Relative to the contract's folder; the finding names the file, and no secret of it is anywhere."""
    written(tmp_path, "producer.properties", PROPERTIES.replace("transactional.id", "x"))
    made = contract({"producer": {"client": "java-4.0", "file": "producer.properties"}}, base=tmp_path)

    found = {finding.rule: finding for finding in findings(made)}

    assert found["producer_acks"].file == "producer.properties"
    assert "in:       producer.properties" in findings_text(tuple(found.values()))
    assert "hunter2" not in repr((found, declared(made)))


def test_a_file_and_the_contract_that_differ_are_reported_and_the_file_counts(tmp_path: Path) -> None:
    """The file is what the program reads; a contract that says otherwise is wrong about its own pipeline."""
    written(tmp_path, "p.properties", "acks=1\nretries=5\n")
    made = contract(
        {"producer": {"client": "java-4.0", "file": "p.properties", "acks": "all", "retries": 5}},
        base=tmp_path,
    )

    found = {finding.rule: finding for finding in findings(made)}

    assert found["settings_disagree"].severity is Severity.CRITICAL
    assert "the contract says all, and p.properties says 1" in found["settings_disagree"].failure
    assert found["producer_acks"].value == "1"


def test_other_names_of_a_setting_are_known() -> None:
    """Aliases, underscores, units of retention; where two names are set, a topic's own counts before the broker's."""
    made = declared(
        contract(
            {
                "producer": {"client": "kafka-python-3.0", "enable_idempotence": False},
                "consumer": {"client": "librdkafka", "max.in.flight": 1},
                "broker": {
                    "log.retention.hours": 2,
                    "default.replication.factor": 1,
                    "replication.factor": 3,
                },
            }
        )
    )

    assert made["producer"].text("enable.idempotence") == "false"
    assert made["consumer"].text("max.in.flight.requests.per.connection") == "1"
    assert made["broker"].text("retention.ms") == "7200000"
    assert made["broker"].text("replication.factor") == "3"


def test_a_placeholder_is_left_open() -> None:
    """What somebody else fills in may be anything."""
    found = {
        f.rule: f for f in findings(contract({"producer": {"client": "java-4.0", "acks": "${env:ACKS}"}}))
    }

    assert not found["producer_acks"].is_certain
    assert found["producer_acks"].severity is Severity.WARNING


@pytest.mark.parametrize(
    ("settings", "rule", "expected"),
    [
        ({"producer": {"client": "sarama-1.4"}}, "client_unknown", "one of java, librdkafka, kafka-python"),
        ({"producer": {"client": "4.0"}}, "client_unknown", "java-4.0"),
        ({"consumer": {"output": "idempotent"}}, "word_unknown", "keyed by id, keyed by position"),
    ],
)
def test_words_that_mean_nothing_are_reported(
    settings: dict[str, dict[str, object]], rule: str, expected: str
) -> None:
    """Nothing is taken for something else; what would be understood is listed."""
    found = {finding.rule: finding for finding in findings(contract(settings))}

    assert found[rule].severity is Severity.WARNING
    assert expected in found[rule].advice


@pytest.mark.parametrize(
    ("section", "client", "is_known"),
    [
        ("producer", "java-17", False),
        ("producer", "java-8", False),
        ("producer", "java-1.8", False),
        ("producer", "kafka-clients-3.10.1", False),
        ("producer", "librdkafka-7.0", False),
        ("producer", "confluent-kafka-python-3.0", False),
        ("broker", "kafka-7.5", False),
        ("streams", "streams-21", False),
        ("producer", "java-3.9.1", True),
        ("producer", "java-4.9", True),
        ("producer", "java-4", True),
        ("producer", "librdkafka-0.11.6", True),
        ("producer", "kafka-python-2.2", True),
        ("broker", "kafka-2.8.1", True),
        ("flink", "flink-1.20", True),
    ],
)
def test_a_version_that_there_is_not_is_unknown(section: str, client: str, is_known: bool) -> None:
    """`java-17` is a version of the language: which client runs on it is left open."""
    made = contract({section: {"client": client}})
    found = {finding.rule: finding for finding in findings(made)}

    assert ("client_unknown" not in found) is is_known
    if client.startswith("java") and not is_known:
        assert "not of the language" in found["client_unknown"].failure
        assert not found["producer_acks"].is_certain


def test_a_value_that_no_version_takes_is_none_in_a_version_that_there_is_not() -> None:
    """The program is known, and whichever version it is refuses the value."""
    found = {f.rule for f in findings(contract({"producer": {"client": "java-17", "acks": "al"}}))}

    assert {"client_unknown", "value_unknown"} <= found


@pytest.mark.parametrize("word", ["a", "a.", "a:", "a://", "token ", "a://b:", "A_"])
@pytest.mark.parametrize("line", ["long={}", "{}a=1"])
def test_a_long_word_takes_no_long_time(tmp_path: Path, line: str, word: str) -> None:
    """Every name and value is looked at, and the work grows with its length, not with the square of it."""
    begins = process_time()
    found = lint(tmp_path, "producer", "p.properties", f"acks=1\n{line.format(word * 30_000)}\n")

    assert found["producer_acks"].value == "1"
    assert process_time() - begins < 2

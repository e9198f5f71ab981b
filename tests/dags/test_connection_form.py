"""Airflow's form of a Kafka connection, and that what is typed into it is what the readers take."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import pytest
from tests.dags.home import write_contract  # noqa: F401 - gives Airflow its home before it is imported

from tieout.airflow_provider import provider_info
from tieout.brokers.connection_fields import fields_of

TYPE = "tieout_kafka"


def test_the_metadata_has_the_form_that_airflow_asks_for() -> None:
    """Airflow skips a provider whose metadata its schema refuses."""
    schema = json.loads((files("airflow") / "provider_info.schema.json").read_text())

    jsonschema.validate(provider_info(), schema)


def test_airflow_offers_the_type_with_its_fields() -> None:
    """The form is there without Airflow's own Kafka provider, with the labels that are declared."""
    from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService  # noqa: PLC0415 - slow

    HookMetaService.hook_meta_data.cache_clear()
    (found,) = [one for one in HookMetaService.hook_meta_data() if one.connection_type == TYPE]

    assert found.hook_name == "Kafka (Tieout)"
    assert found.extra_fields is not None
    assert list(found.extra_fields) == list(provider_info()["connection-types"][0]["conn-fields"])
    assert found.extra_fields["bootstrap.servers"]["schema"]["title"] == "Bootstrap servers"
    assert found.standard_fields is not None
    assert found.standard_fields.password.title == "SASL password"
    assert found.standard_fields.url_schema.hidden


def test_airflow_can_import_the_hook() -> None:
    """Airflow 3.1 takes the labels from the hook, in names of its own."""
    from airflow.providers_manager import ProvidersManager  # noqa: PLC0415 - slow

    hook = ProvidersManager().hooks[TYPE]

    assert hook is not None
    assert (hook.connection_type, hook.hook_name) == (TYPE, "Kafka (Tieout)")


def test_what_the_form_leaves_empty_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields that nobody filled in are null or empty text: no setting of that value, and no word None."""
    typed = {
        "bootstrap.servers": "b:9092",
        "security.protocol": None,
        "sasl.mechanism": "",
        "ssl.ca.location": None,
    }
    text = json.dumps({"conn_type": TYPE, "login": "reader", "password": "secret", "extra": typed})
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_FORM", text)

    found = fields_of("kafka_form", "here")

    assert found.extra == {"bootstrap.servers": "b:9092"}
    assert (found.user, found.servers()) == ("reader", "b:9092")
    assert "secret" not in repr(found)

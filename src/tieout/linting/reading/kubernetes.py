"""Kubernetes resources that hold settings: Strimzi's, Confluent's, Flink's and Spark's operators, config maps, pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_SECTIONS: Final = {
    "Kafka": ("broker",),
    "KafkaNodePool": (),
    "KafkaTopic": ("broker",),
    "KafkaConnect": ("connect",),
    "Connect": ("connect",),
    "KafkaConnector": ("connector",),
    "Connector": ("connector",),
    "KafkaMirrorMaker2": ("connect", "connector"),
    "KafkaUser": (),
    "KafkaBridge": ("producer", "consumer"),
    "FlinkDeployment": ("flink",),
    "FlinkSessionJob": ("flink",),
    "SparkApplication": ("spark",),
    "ScheduledSparkApplication": ("spark",),
}
"""The parts whose settings an operator's resource holds; a resource of another kind may hold any part's."""

_CONTENT_KEYS: Final = ("spec", "data", "stringData", "binaryData")
_OTHER_KEYS: Final = ("apiVersion", "kind", "metadata", "status")

_TEMPLATE: Final = "Template"
"""OpenShift's list of resources."""

_CONFIG_MAP: Final = "ConfigMap"
_OF_FLINK: Final = ("FlinkDeployment", "FlinkSessionJob")
_INTERVAL: Final = "execution.checkpointing.interval"
_RETENTION: Final = "execution.checkpointing.externalized-checkpoint-retention"


def is_resource(tree: Any) -> bool:
    """Return whether the document is a resource of Kubernetes, or a list of them."""
    return isinstance(tree, dict) and isinstance(tree.get("kind"), str) and "apiVersion" in tree


def resources(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the resources of a list, or the single resource."""
    items = tree.get("objects") if tree["kind"] == _TEMPLATE else tree.get("items")
    if tree["kind"].endswith(("List", _TEMPLATE)) and isinstance(items, list):
        for item in items:
            if isinstance(item, dict):
                yield from resources({"kind": "", "apiVersion": "", **item})
    else:
        yield tree


def settings_in(resource: dict[str, Any], section: str) -> tuple[str, dict[str, Any] | None]:
    """Return the resource's label and its settings for the part, None if it belongs to another part."""
    kind = str(resource["kind"])
    metadata = resource.get("metadata")
    name = str(metadata.get("name") or "") if isinstance(metadata, dict) else ""
    label = f"{kind} {name}".strip()
    if section not in _SECTIONS.get(kind, (section,)):
        return label, None
    spec = resource.get("spec")
    if kind in ("KafkaTopic", "KafkaConnector", "Connector") and isinstance(spec, dict):
        return label, _of_spec(kind, name, spec)
    contents = {key: resource[key] for key in _CONTENT_KEYS if isinstance(resource.get(key), dict)}
    if kind in _OF_FLINK and isinstance(spec, dict):
        contents = {**_of_operator(spec), **contents}
    return label, contents or {key: value for key, value in resource.items() if key not in _OTHER_KEYS}


def _of_operator(spec: dict[str, Any]) -> dict[str, str]:
    """Return the defaults that Flink's operator sets for a job; settings of the resource override them.

    Source: apache/flink-kubernetes-operator, FlinkConfigBuilder.applyJobConfig.

    >>> _of_operator({"job": {"upgradeMode": "savepoint"}})
    {'execution.checkpointing.externalized-checkpoint-retention': 'RETAIN_ON_CANCELLATION'}
    >>> _of_operator({})
    {}
    """
    job = spec.get("job")
    if not isinstance(job, dict):
        return {}
    interval = {_INTERVAL: "5 min"} if job.get("upgradeMode") == "last-state" else {}
    return {_RETENTION: "RETAIN_ON_CANCELLATION", **interval}


def _of_spec(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Return a topic's or connector's settings under Kafka's names."""
    config = spec.get("config") or spec.get("configs") or {}
    settings = dict(config) if isinstance(config, dict) else {}
    if kind == "KafkaTopic":
        from_spec = {
            "replication.factor": spec.get("replicas"),
            "partitions": spec.get("partitions") or spec.get("partitionCount"),
            "topic": spec.get("topicName") or spec.get("name") or name,
        }
    else:
        from_spec = {"connector.class": spec.get("class"), "name": name, "tasks.max": spec.get("tasksMax")}
    return {**settings, **{key: value for key, value in from_spec.items() if value}}


def with_config_maps(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the resources, with the variables that containers take from config maps among them.

    What is taken out of a config map is no longer in it. A map of which there are two is not taken from, and neither
    is one that is not among the resources: what they hold stays open.
    """
    names = Counter(_name_of_map(each) for each in found if each["kind"] == _CONFIG_MAP)
    maps = {
        _name_of_map(each): {key: value for key, value in each["data"].items() if isinstance(value, str)}
        for each in found
        if each["kind"] == _CONFIG_MAP
        and isinstance(each.get("data"), dict)
        and names[_name_of_map(each)] == 1
    }
    taken: set[tuple[str, str]] = set()
    filled = [each if each["kind"] == _CONFIG_MAP else _filled(each, maps, taken) for each in found]
    return [_without_taken(each, taken) if each["kind"] == _CONFIG_MAP else each for each in filled]


_Maps = Mapping[str, Mapping[str, str]]


def _name_of_map(resource: dict[str, Any]) -> str:
    metadata = resource.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


def _without_taken(config_map: dict[str, Any], taken: set[tuple[str, str]]) -> dict[str, Any]:
    data, name = config_map.get("data"), _name_of_map(config_map)
    if not isinstance(data, dict):
        return config_map
    return {**config_map, "data": {key: value for key, value in data.items() if (name, key) not in taken}}


def _filled(tree: Any, maps: _Maps, taken: set[tuple[str, str]]) -> Any:
    """Return the tree with the containers' variables from config maps as if they were written there."""
    if isinstance(tree, list):
        return [_filled(item, maps, taken) for item in tree]
    if not isinstance(tree, dict):
        return tree
    filled = {key: _filled(value, maps, taken) for key, value in tree.items()}
    own = [_with_value(each, maps, taken) for each in _list(filled.get("env"))]
    sources = _list(filled.get("envFrom"))
    known = [each for each in sources if _map_of(each, "configMapRef") in maps]
    if not own and not known:
        return filled
    variables: dict[str, str] = {}
    for source in known:
        name = _map_of(source, "configMapRef")
        whole = {key: value for key, value in maps[name].items() if "\n" not in value}  # not files
        variables |= {f"{source.get('prefix') or ''}{key}": value for key, value in whole.items()}
        taken |= {(name, key) for key in whole}
    set_here = {each.get("name") for each in own if isinstance(each, dict)}
    filled["env"] = [
        {"name": key, "value": value} for key, value in variables.items() if key not in set_here
    ] + own
    if known:
        filled["envFrom"] = [each for each in sources if each not in known]
    return filled


def _with_value(variable: Any, maps: _Maps, taken: set[tuple[str, str]]) -> Any:
    origin = variable.get("valueFrom") if isinstance(variable, dict) else None
    name, key = _map_of(origin, "configMapKeyRef"), _field_of(origin, "configMapKeyRef", "key")
    if key not in maps.get(name, {}):
        return variable
    taken.add((name, key))
    return {"name": variable.get("name"), "value": maps[name][key]}


def _map_of(origin: Any, kind: str) -> str:
    return _field_of(origin, kind, "name")


def _field_of(origin: Any, kind: str, field: str) -> str:
    reference = origin.get(kind) if isinstance(origin, dict) else None
    return str(reference.get(field) or "") if isinstance(reference, dict) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []

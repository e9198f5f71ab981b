"""Kubernetes resources that hold settings: Strimzi's, Confluent's, Flink's and Spark's operators, config maps, pods."""

from __future__ import annotations

from collections.abc import Iterator
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

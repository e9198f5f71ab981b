"""A broker that stands still for longer than producers wait for it, and what they send again."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence

from tests.integration.kafka_faults.cluster import wait_until
from tests.integration.kafka_faults.scene import Case, Scene, breaks_of
from tools.record.processes import end

_STRUCK = 2
"""The broker that is stopped; it coordinates nothing."""
_STOPPED_FOR = 3.0
"""Seconds; longer than a request may take, shorter than the controller's patience."""
_REQUEST_MS = 1_000
_STOPS = 4
_PER_SECOND = 60
_PLAIN = {
    "enable.idempotence": "false",
    "retries": "10",
    "request.timeout.ms": str(_REQUEST_MS),
    "delivery.timeout.ms": "60000",
    "retry.backoff.ms": "100",
    "linger.ms": "300",
    "max.in.flight.requests.per.connection": "5",
}
_MESSAGES = 20
_KEYED = "keyed-by-id"
"""The group whose output has a message once, however often the log has it."""
TOPICS = ("stopped-plain", "stopped-idempotent", "sent-again")


def stopped_broker(scenes: Mapping[str, Scene]) -> list[Case]:
    """The broker is stopped and goes on: it finds in its buffers what producers have given up and sent again.

    One producer retries without idempotence, one with it, and one application starts a new producer and sends again.
    """
    plain, idempotent, resent = (scenes[name] for name in TOPICS)
    for scene in scenes.values():
        scene.create([[_STRUCK]])
    tool = _verifiable_producer(plain)
    patient = idempotent.sender(socket_timeout_ms=_REQUEST_MS, message_timeout_ms=60_000)
    first = resent.sender("sender-1", socket_timeout_ms=_REQUEST_MS, message_timeout_ms=1_500)
    unsure = resent.ids(_MESSAGES)
    for scene, sender in ((idempotent, patient), (resent, first)):
        sender.call("send", ids=scene.ids(_MESSAGES), partition=0)
        sender.call("settle")
    wait_until(lambda: len(plain.records()) > _PER_SECOND, "the verifiable producer's start")

    broker = plain.cluster.brokers[_STRUCK]
    for number in range(_STOPS):
        broker.pause()
        patient.call("send", ids=idempotent.ids(_MESSAGES), partition=0)
        if number == 0:
            first.call("send", ids=unsure, partition=0)
            time.sleep(_STOPPED_FOR)
            outcomes = {row[-1] for row in first.call("settle")}
            first.kill()
            if outcomes != {"unknown"}:
                raise AssertionError(f"expected sends that time out, found {outcomes}")
        else:
            time.sleep(_STOPPED_FOR)
        broker.resume()
        patient.call("settle")
        if number == 0:
            _send_again(resent, unsure)
        time.sleep(_REQUEST_MS / 1000)
        if _is_struck(plain):
            break
    end(tool)
    if tool.returncode not in (0, 143):
        raise AssertionError(f"the verifiable producer ended with {tool.returncode}")
    cases = []
    for scene in (plain, idempotent, resent):
        scene.end()
        scene.drain(f"{scene.name}-loader")
    resent.drain(_KEYED, sink="table", key=["message_id"])
    cases.append(_plain_case(plain))
    fault = "broker stopped for longer than a request may take"
    cases.append(
        idempotent.case(
            fault,
            "retries with idempotence",
            f"{idempotent.name}-loader",
            "KEPT",
            {"DELIVERED": len(idempotent.records())},
        )
    )
    return [*cases, *_resent_cases(resent, unsure)]


def _verifiable_producer(scene: Scene) -> subprocess.Popen[bytes]:
    """Start Kafka's own producer, which retries out of order where it is not idempotent."""
    settings = scene.folder / "producer.properties"
    settings.write_text("".join(f"{name}={value}\n" for name, value in _PLAIN.items()))
    (scene.folder / "produced").mkdir()
    where = ["--bootstrap-server", scene.cluster.bootstrap, "--topic", scene.name]
    how = ["--throughput", str(_PER_SECOND), "--command-config", str(settings)]
    command = scene.cluster.jars.java("org.apache.kafka.tools.VerifiableProducer", *where, *how)
    with (
        (scene.folder / "produced" / "sender.jsonl").open("wb") as output,
        (scene.folder / "tool.err").open("wb") as errors,
    ):
        tool = subprocess.Popen(command, stdout=output, stderr=errors)
    scene.stack.callback(end, tool)
    return tool


def _send_again(scene: Scene, ids: Sequence[str]) -> None:
    again = scene.sender("sender-2")
    again.call("send", ids=list(ids), partition=0)
    again.call("settle")
    again.kill()


def _is_struck(scene: Scene) -> bool:
    """Return whether the log shows both a message twice and two in the wrong order."""
    places = _positions(scene)
    return any(len(found) > 1 for found in places.values()) and any(_descents(places))


def _positions(scene: Scene) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for offset, id_ in scene.records():
        places.setdefault(id_, []).append(offset)
    return places


def _descents(places: Mapping[str, Sequence[int]]) -> Iterator[int]:
    """Give the first position of each message that lies before that of the one sent before it."""
    before = -1
    for id_ in sorted(places, key=int):
        if places[id_][0] < before:
            yield places[id_][0]
        before = places[id_][0]


def _plain_case(scene: Scene) -> Case:
    places = _positions(scene)
    doubled = [[0, found[0], id_] for id_, found in places.items() if len(found) > 1]
    if not doubled:
        raise AssertionError(
            f"expected retries to write some message twice; the broker was stopped {_STOPS} times"
        )
    breaks = breaks_of(
        doubled,
        "OUTPUT_DUPLICATE",
        "producer → broker",
        "retry without idempotence",
        ["LOG_DUPLICATE", "inherited"],
    )
    swapped = breaks_of(
        [[0, offset, None] for offset in _descents(places)],
        "REORDER_PRODUCER",
        "producer → broker",
        "several requests in flight without idempotence",
    )
    classes = {"DELIVERED": len(places) - len(doubled), "OUTPUT_DUPLICATE": len(doubled)}
    if swapped:
        classes["REORDER_PRODUCER"] = len(swapped)
    return scene.case(
        "broker stopped for longer than a request may take",
        "retries without idempotence",
        f"{scene.name}-loader",
        "BROKEN",
        classes,
        breaks + swapped,
        produced={"kind": "verifiable_producer", "path": "produced/*.jsonl"},
        message_id="cast(value as string)",
    )


def _resent_cases(scene: Scene, unsure: Sequence[str]) -> list[Case]:
    places = _positions(scene)
    doubled = [[0, places[id_][0], id_] for id_ in unsure]
    if any(len(places[id_]) != 2 for id_ in unsure):
        raise AssertionError("expected the log to hold twice what was sent again")
    fault, configuration = (
        "broker stopped, and a new producer sends again",
        "idempotence, which does not outlive its producer",
    )
    resend, once = "producer restart or application resend", len(places) - len(doubled)
    return [
        scene.case(
            fault,
            configuration,
            f"{scene.name}-loader",
            "BROKEN",
            {"DELIVERED": once, "OUTPUT_DUPLICATE": len(doubled)},
            breaks_of(
                doubled,
                "OUTPUT_DUPLICATE",
                "producer → broker",
                resend,
                ["LOG_DUPLICATE", "inherited"],
            ),
        ),
        scene.case(
            fault,
            "the same, into a table keyed by message id",
            _KEYED,
            "KEPT",
            {"DELIVERED": once, "LOG_DUPLICATE": len(doubled)},
            breaks_of(doubled, "LOG_DUPLICATE", "producer → broker", resend),
        ),
    ]

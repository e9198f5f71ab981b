"""Pulsar's entries as a real broker handed them out, and as none does."""

from __future__ import annotations

import pytest
from tests.pulsar import ANSWERS, ORDERS

from tieout.engine.systems.json_texts import FormatError
from tieout.engine.systems.pulsar_entries import ABORTED, COMMITTED, Entry, entry_in
from tieout.pulsar import Answer, SavedAnswers


def _recorded(ledger: int, number: int) -> Answer:
    return SavedAnswers(ANSWERS, "").get(f"{ORDERS}/ledger/{ledger}/entry/{number}")


def _entry(*headers: tuple[str, str], body: bytes = b"{}") -> Entry:
    known = (("X-Pulsar-publish-time", "2026-11-26T21:21:12.66Z"), ("X-Pulsar-sequence-id", "7"))
    return entry_in(Answer(200, (*known, *headers), body))


def test_an_entry_is_one_message_with_its_producer_and_sequence_id() -> None:
    """Key and properties are in its head."""
    found = entry_in(_recorded(5, 4))

    assert (found.producer, found.transaction, found.marker) == ("web", None, None)
    (message,) = found.messages
    assert (message.sequence, message.key, message.value) == (4, b"k0", b'{"order_id":"m-4"}')
    assert message.properties == {"id": "m-4"}
    assert found.published_at is not None


def test_each_message_of_a_batch_has_its_own_key_properties_and_sequence_id() -> None:
    """In their order."""
    found = entry_in(_recorded(5, 7))

    assert [
        (one.batch, one.sequence, one.key, one.properties["id"], one.value) for one in found.messages
    ] == [(n - 5, n - 5, b"k0", f"m-{n}", f'{{"order_id":"m-{n}"}}'.encode()) for n in range(5, 10)]


def test_an_entry_tells_of_its_transaction() -> None:
    """Of data the broker says what it knows, and markers say which way it ended."""
    entries = [entry_in(_recorded(15, number)) for number in range(9)]

    assert [one.transaction for one in entries] == [(0, 0)] * 3 + [(0, 1)] * 3 + [(0, 2)] * 2 + [None]
    assert [one.marker for one in entries if one.marker] == [COMMITTED, ABORTED]
    assert [number for number, one in enumerate(entries) if one.is_aborted] == [3, 4, 5]
    assert [number for number, one in enumerate(entries) if one.is_uncommitted] == [6, 7, 8]
    assert not entries[2].messages


def test_a_text_in_the_head_that_may_have_lost_characters_is_not_known() -> None:
    """The web server writes a blank for what is not Latin-1: `grün-€-10` was sent."""
    (message,) = entry_in(_recorded(15, 8)).messages
    (keyed,) = _entry(("X-Pulsar-partition-key", "a b"), ("X-Pulsar-PROPERTY-name", "Grün")).messages

    assert message.properties == {"id": None}
    assert (keyed.key, keyed.has_unknown_key, keyed.properties) == (None, True, {"name": "Grün"})


def test_keys_and_values_may_be_bytes_or_none() -> None:
    """A key in base 64 is the bytes; a value that is null is no empty one."""
    (encoded,) = _entry(
        ("X-Pulsar-partition-key", "AP8="), ("X-Pulsar-partition-key-b64-encoded", "true")
    ).messages
    (null,) = _entry(("X-Pulsar-null-value", "true"), body=b"").messages
    (empty,) = _entry(body=b"").messages

    assert encoded.key == b"\x00\xff"
    assert (null.value, null.key, empty.value) == (None, None, b"")


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (("X-Pulsar-Is-Encrypted", "true"), "encrypted"),
        (("X-Pulsar-num-chunks-from-msg", "3"), "chunk"),
        (("X-Pulsar-marker-type", "x"), "X-Pulsar-marker-type"),
        (("X-Pulsar-txnid-most-bits", ""), "X-Pulsar-txnid-most-bits"),
        (("X-Pulsar-num-batch-message", "2"), "cut off"),
    ],
)
def test_an_entry_of_unknown_form_is_refused(header: tuple[str, str], said: str) -> None:
    """By what is wrong with it."""
    with pytest.raises(FormatError, match=said):
        _entry(header)


def test_an_answer_without_the_head_of_an_entry_is_none() -> None:
    """A page of a proxy is no message."""
    with pytest.raises(FormatError, match="X-Pulsar-publish-time"):
        entry_in(Answer(200, (("Content-Type", "text/html"),), b"<html>"))


def test_a_batch_is_refused_wherever_it_is_cut() -> None:
    """And where something stands behind its messages."""
    whole = _recorded(5, 7)

    for length in range(len(whole.body)):
        with pytest.raises(FormatError):
            entry_in(Answer(200, whole.headers, whole.body[:length]))
    with pytest.raises(FormatError, match="1 bytes behind"):
        entry_in(Answer(200, whole.headers, whole.body + b"\0"))

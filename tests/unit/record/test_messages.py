"""What the recordings' messages look like, and that every side fingerprints them alike."""

from __future__ import annotations

import hashlib

from tools.record.messages import fingerprint, id_in, key_of, message_ids, payload_of


def test_every_fifth_message_has_no_key() -> None:
    """Null keys are part of every recording with our own producers."""
    keys = [key_of(message_id) for message_id in message_ids("web", 0, 10)]

    assert [number for number, key in enumerate(keys) if key is None] == [0, 5]
    assert keys[1] == b"customer-1"


def test_a_resend_is_an_equal_one() -> None:
    """The same id has the same content, and another id another one."""
    assert payload_of("web-000007") == payload_of("web-000007")
    assert payload_of("web-000007") != payload_of("web-000008")


def test_the_id_is_read_back_from_the_payload() -> None:
    """Our producers' values are JSON, a verifiable producer's are the id itself."""
    assert id_in(payload_of("web-000007")) == "web-000007"
    assert id_in(b"2.17") == "2.17"


def test_a_fingerprint_is_the_hash_of_the_bytes() -> None:
    """SHA-256 in lower-case hex; no bytes have none, empty bytes have one."""
    assert fingerprint(b"a") == hashlib.sha256(b"a").hexdigest()
    assert fingerprint(None) is None
    assert fingerprint(b"") is not None

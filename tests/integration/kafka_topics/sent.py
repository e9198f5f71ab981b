"""What is in the topics, and who may read them: known to the broker's side and to the tests."""

from __future__ import annotations

USER, PASSWORD = "auditor", 'ge"heim\\42'
GROUP = "orders-loader"
PAYLOADS = [f'{{"id": "o-{number:02}", "amount": {number}}}' for number in range(24)]
LATEST_STAMP = 2**63 - 1
"""The largest time that a producer can give a record, in milliseconds."""

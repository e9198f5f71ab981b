"""The heat map shows what each hour came to, and what was never judged."""

from __future__ import annotations

import re

from fastapi.testclient import TestClient

DAY = {"period": "day", "until": "2026-11-21T00:00:00Z", "name": "orders"}


def _row(client: TestClient, **query: str) -> list[str]:
    """Return what the cells of the pipeline `orders` say, hour by hour."""
    answer = client.get("/", params={**DAY, **query})
    assert answer.status_code == 200
    return re.findall(r'<td><(?:a|span) class="cell[^"]*"[^>]*title="([^"]*)"', answer.text)[1:]


def test_each_hour_shows_its_verdict(reader: TestClient) -> None:
    """A run that was not checked is not kept, a check that failed breaks, and hours without a run are missing."""
    reported = [cell.split(": ", 1)[1] for cell in _row(reader)]

    assert reported[:11] == [
        "1 KEPT",
        "1 BROKEN",
        "1 PENDING",
        "never judged: 2026-11-20 03:00 to 05:00",
        "never judged: 2026-11-20 03:00 to 05:00",
        "1 UNKNOWN",
        "1 UNKNOWN",
        "1 BROKEN",
        "never judged: 2026-11-20 08:00 to 09:00",
        "nothing expected",
        "nothing expected",
    ]

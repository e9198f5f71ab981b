"""Each page tells what is stored about its subject, and leads on."""

from __future__ import annotations

import csv
import html
import io
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from tests.store.examples import run_id
from tests.web.conftest import ClientFor

from tieout import settings
from tieout.checks import DATA_DOCS_SITE

WINDOW = "/pipelines/orders/windows/2026-11-20T01:00:00Z/2026-11-20T02:00:00Z"


def _text(page: str) -> str:
    """Return a page's text, a blank between any two pieces of it."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_a_pipeline_shows_verdicts_plots_incidents_and_contract(reader: TestClient) -> None:
    """Everything about one pipeline is on one page, numbers beside the drawings."""
    page = reader.get("/pipelines/orders", params={"period": "day", "until": "2026-11-20T10:00:00Z"}).text

    text = _text(page)
    for title in ("Messages accepted", "Lost, duplicated and late", "Latency", "Log offsets", "Lag"):
        assert title in text
    assert "2026-11-20 01:00 20 % 0 % 10 %" in text, "2 of 10 lost, none doubled, 1 late"
    assert "2026-11-20 01:00 0.4 1.5 2.5" in text, "the latency's percentiles"
    assert "producer acks 1" in text
    assert re.search(r"producer.acks = 1 critical [^.]*LOST", text), "the linter's finding"
    assert re.search(r"LOST open critical 2 orders-0 5 to 9 consumer commit before process", text)


def test_a_window_shows_its_statement(reader: TestClient) -> None:
    """The sums, the partition's line, the incidents and the checks of the current run."""
    answer = reader.get(WINDOW)

    text = _text(answer.text)
    assert answer.status_code == 200
    assert "✗ BROKEN orders, 2026-11-20 01:00 to 02:00" in text
    assert "2 messages lost" in text
    assert (
        "delivered 8 dead lettered 0 filtered 0 unverifiable 0 compacted 0 lost 2 in flight 0 accepted 10"
        in text
    )
    assert "no loss critical fail 2 0" in text
    assert "90 delivered" in text
    assert "Contradicted settings" in text
    assert "declared: positions are committed after" in text


def test_a_run_that_was_not_checked_claims_nothing(reader: TestClient) -> None:
    """The judge's KEPT without the independent checks is shown as not known."""
    text = _text(reader.get(f"/runs/{run_id(7)}").text)

    assert "? UNKNOWN orders" in text
    assert "the judge said KEPT" in text


def test_an_incident_shows_breaks_evidence_and_repair(reader: TestClient) -> None:
    """What happened, by which rule, on which rows, and what to do."""
    text = _text(reader.get(f"/runs/{run_id(2)}/incident", params={"id": "incident-1"}).text)

    assert "LOST: 2 breaks in orders-0" in text
    assert "Commit offsets after the output is written" in text
    assert "Field produced message_id m-1 outcome acked" in text
    assert "All 2." in text


def test_a_replay_without_bodies_is_warned_of(writer: TestClient) -> None:
    """Whoever may plan a replay is told before what the plan would refuse."""
    text = _text(writer.get(f"/runs/{run_id(2)}/incident", params={"id": "incident-1"}).text)
    named = _text(writer.get(f"/runs/{run_id(52)}/incident", params={"id": "incident-1"}).text)

    assert "Plan a replay" in text
    assert "without it the plan refuses every message" in text
    assert "Plan a replay" in named
    assert "without it the plan refuses every message" not in named


@pytest.mark.parametrize(
    ("page", "status", "expected"),
    [
        ("/pipelines/unheard_of", 200, "No run of a pipeline of that name is stored"),
        ("/pipelines/orders/windows/2026-11-20T03:00:00Z/2026-11-20T04:00:00Z", 404, "was never judged"),
        (f"/runs/{run_id(99)}", 404, "No run of that id is stored"),
        (f"/runs/{run_id(2)}/incident?id=nothing", 404, "No incident of that id"),
        ("/pipelines/orders/windows/yesterday/today", 400, "start"),
        ("/pipelines/orders/windows/2026-11-20T04:00:00Z/2026-11-20T03:00:00Z", 400, "ends after it starts"),
        ("/pipelines/orders/incidents?after=nonsense", 400, "expected the key of a row"),
        ("/pipelines/orders/incidents?after=[1,2]", 400, "expected a key of window_start"),
        ("/pipelines/orders/windows?after=[1,2,3]", 400, "expected a key of window_start"),
        ("/pipelines/orders/windows?verdict=FINE", 400, "verdict"),
        ("/runs/nothing", 400, "run_id"),
        ("/pipelines/a%00b", 400, "pipeline"),
        (f"/runs/{run_id(2)}/incident?id=%00", 400, "id"),
        ("/pipelines/orders/incidents?topic=%00", 400, "topic: expected text without"),
        ("/?period=century", 400, "period"),
    ],
)
def test_what_is_not_there_is_said(reader: TestClient, page: str, status: int, expected: str) -> None:
    """A wrong address gets a page that says what is wrong with it."""
    answer = reader.get(page)

    assert answer.status_code == status
    assert expected in _text(answer.text)


def test_lists_are_filtered_and_sorted(reader: TestClient) -> None:
    """A filter leaves what it names, an order gives the first row."""
    broken = _text(reader.get("/pipelines/orders/windows?verdict=BROKEN&sort=oldest").text)
    nothing = _text(reader.get("/pipelines/orders/incidents?class=PHANTOM_UNKNOWN").text)
    one = _text(reader.get(f"/runs/{run_id(2)}/breaks?message=m-2").text)

    assert broken.index("01:00 to 02:00") < broken.index("07:00 to 08:00")
    assert "00:00 to 01:00" not in broken
    assert "No incident of that kind" in nothing
    assert "m-2" in one
    assert "m-1 " not in one


def test_a_list_is_taken_away_as_csv(reader: TestClient) -> None:
    """The file has a header and every row, whatever the page shows at once."""
    answer = reader.get("/pipelines/orders/windows.csv", params={"verdict": "", "sort": "oldest"})

    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["verdict"] for row in rows] == ["KEPT", "BROKEN", "PENDING", "UNKNOWN", "UNKNOWN", "BROKEN"]
    assert answer.headers["content-disposition"] == 'attachment; filename="orders_windows.csv"'


def test_every_link_of_every_page_leads_somewhere(reader: TestClient) -> None:
    """Links are followed from the heat map on: none that stays within the pages is refused or missing."""
    seen: set[str] = set()
    ahead = ["/?period=day&until=2026-11-21T00:00:00Z"]
    while ahead:
        page = ahead.pop()
        answer = reader.get(page)
        assert answer.status_code == 200, page
        if "html" in answer.headers["content-type"]:
            found = {html.unescape(link) for link in re.findall(r'href="(/[^"#]*)', answer.text)}
            new = {link for link in found if not link.startswith("/dags/")} - seen
            # Before and after go on for ever.
            new = {link for link in new if "until=" not in link or "2026-11-21" in link}
            seen |= new
            ahead += new

    assert len(seen) > 30


def test_a_run_s_data_docs_load_nothing_from_elsewhere(
    reader: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library's page is shown without scripts, remote styles and pictures; the window's page leads to it."""
    monkeypatch.setenv("TIEOUT_HOME", str(tmp_path))
    address = f"/runs/{run_id(2)}/data-docs"
    assert reader.get(address).status_code == 404
    assert address not in reader.get(f"/runs/{run_id(2)}").text

    site = settings.data_docs_folder("orders") / DATA_DOCS_SITE / "validations" / "suite" / run_id(2) / "1"
    site.mkdir(parents=True)
    (site / "window.html").write_text(
        '<html><head><link rel="stylesheet" href="https://cdn.example/a.css"><script src="https://cdn.example/a.js">'
        '</script></head><body><img src="https://s3.example/logo?dataContextId=1"><a href="../index.html">Home</a>'
        '<td><i class="fas fa-times text-danger" ></i> lost: 3</td><footer>Subscribe</footer></body></html>'
    )
    found = reader.get(address)

    assert "Home<td>fail lost: 3</td></body>" in found.text
    assert "example" not in found.text
    assert "script" not in found.text
    assert "tieout.css" in found.text
    assert "script-src 'self'" in found.headers["content-security-policy"]
    assert address in reader.get(f"/runs/{run_id(2)}").text


def test_data_docs_are_for_those_who_may_read_the_pipeline(client_for: ClientFor) -> None:
    """Like every page of it."""
    assert client_for("stranger").get(f"/runs/{run_id(2)}/data-docs").status_code == 403

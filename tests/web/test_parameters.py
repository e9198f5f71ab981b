"""Every parameter of every page is checked before anything is asked of the store, and every error is a page."""

from __future__ import annotations

import html
import json
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from tests.store.examples import run_id
from tests.web.people import Badges
from tests.web.stories import NOW

from tieout.web import create_app
from tieout.web.app import HEADERS

RUN = f"/runs/{run_id(2)}"
DAY = "2026-11-20T01:00:00Z"
DEEP = "[" * 20_000
NUMBERS = ["-1", "1.5", "1e3", str(2**31), "9" * 5_000, "x", "0x10", "NaN"]
TIMES = [
    "yesterday",
    "2026-11-20",
    "2026-11-20T10:00:00",
    "1969-12-31T23:59:59Z",
    "2100-01-01T00:00:01Z",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00+14:00",
    "1700000000",
    "9" * 400,
]
CURSORS = [
    "nonsense",
    "{}",
    "7",
    DEEP,
    json.dumps([DAY, DAY]),
    json.dumps([DAY, DAY, "no run"]),
    json.dumps(["2026-W01-1T00:00:00Z", "2026-11-20T01:00:00+00:00", run_id(2)]),
    json.dumps(["2026-11-20T01:00:00+00:00", "2026-11-20T01:00:00+00:00", "{" + run_id(2) + "}"]),
    json.dumps(["2026-11-20T01:00:00+00:00", "2026-11-20T01:00:00+00:00", [run_id(2)]]),
    json.dumps([None, None, None]),
    "[" + "9" * 5_000 + "]",
]
BREAK_CURSORS = [
    json.dumps(["\ud800", 0, 0, "b"]),
    json.dumps(["\x00", 0, 0, "b"]),
    json.dumps(["orders", True, 0, "b"]),
    json.dumps(["orders", 0, 2**63, "b"]),
    json.dumps(["orders", 0.5, 0, "b"]),
]


NAMES = ["A", "a b", "a%00b", "a'b", "a" * 300, "é", "..%5c"]
IDS = ["1", "x" * 36, run_id(2) + "0", "%00"]
WORDS = ["nothing", "%00", "1", "KEPT'"]
POSITIONS = ["orders", "orders/0", "orders/x/1", "orders/0/" + "9" * 30, "orders/" + "9" * 30 + "/0"]
WINDOWS, INCIDENTS, TRACE = (f"/pipelines/orders/{page}" for page in ("windows", "incidents", "trace"))
LISTS = [WINDOWS, f"{WINDOWS}.csv", INCIDENTS, f"{INCIDENTS}.csv"]

ATTACKS = [
    # Addresses, what is put into them, and the parameter that must be named.
    (
        [f"/pipelines/{{}}{rest}" for rest in ("/windows", "/windows.csv", "/incidents", "/trace")],
        NAMES,
        "pipeline",
    ),
    (["/pipelines/{}/incidents.csv", f"/pipelines/{{}}/windows/{DAY}/{DAY}"], NAMES, "pipeline"),
    ([f"/runs/{{}}{rest}" for rest in ("", "/breaks", "/breaks.csv", "/incident?id=i")], IDS, "run_id"),
    (["/?until={}", "/pipelines/orders?until={}"], TIMES, "until"),
    ([f"{WINDOWS}/{{}}/{DAY}", *(f"{page}?start={{}}" for page in LISTS)], TIMES, "start"),
    ([f"{WINDOWS}/{DAY}/{{}}", *(f"{page}?end={{}}" for page in LISTS)], TIMES, "end"),
    ([f"{INCIDENTS}?partition={{}}", f"{RUN}/breaks?partition={{}}"], NUMBERS, "partition"),
    ([f"{page}?after={{}}" for page in (WINDOWS, INCIDENTS, f"{RUN}/breaks")], CURSORS, "after"),
    (
        [f"{page}.csv?after={{}}" for page in (WINDOWS, INCIDENTS, f"{RUN}/breaks")],
        ["nonsense", DEEP],
        "after",
    ),
    ([f"{RUN}/breaks?after={{}}"], BREAK_CURSORS, "after"),
    (["/?period={}"], WORDS, "period"),
    *(([f"{WINDOWS}?{name}={{}}"], WORDS, name) for name in ("verdict", "sort")),
    *(
        ([f"{INCIDENTS}?{name}={{}}"], WORDS, name)
        for name in ("class", "severity", "locus", "cause", "state", "sort")
    ),
    *(([f"{RUN}/breaks?{name}={{}}"], WORDS, name) for name in ("class", "severity", "sort")),
    ([f"{TRACE}?by={{}}&value=m"], WORDS, "by"),
    ([f"{INCIDENTS}?topic={{}}", f"{RUN}/breaks?topic={{}}"], ["a%00"], "topic"),
    ([f"{RUN}/breaks?message={{}}"], ["a%00"], "message"),
    ([f"{RUN}/incident?id={{}}"], ["%00"], "id"),
    ([f"{TRACE}?value={{}}"], ["a%00"], "value"),
    ([f"{TRACE}?by=position&value={{}}"], POSITIONS, "position"),
    *(([f"/?{name}={{}}"], ["a%00"], name) for name in ("after", "name")),
]
BAD = sorted(
    (address.format(quote(value, safe="%/'")), name)
    for addresses, values, name in ATTACKS
    for address in addresses
    for value in values
)


@pytest.fixture
def asker(stories_url: str) -> TestClient:
    """Somebody who may write, shown what a browser would be shown whatever fails."""
    app = create_app(lambda: stories_url, Badges(), clock=lambda: NOW)
    return TestClient(app, headers={"x-badge": "writer"}, raise_server_exceptions=False)


def test_a_bad_parameter_is_named_and_what_is_expected(asker: TestClient) -> None:
    """Whatever the page, a bad value gets a page with status 400 or 404 that names the parameter."""
    assert len(BAD) > 200

    wrong = []
    for address, name in BAD:
        answer = asker.get(address)
        text = html.unescape(answer.text)
        if answer.status_code not in (400, 404) or f"{name}:" not in text or len(answer.text) > 20_000:
            wrong.append((address[:120], answer.status_code, text[-300:]))
        assert set(map(str.lower, HEADERS)) <= set(answer.headers)
    assert not wrong, f"{len(wrong)} of {len(BAD)}: {wrong[:5]}"


@pytest.mark.parametrize(
    "form",
    [
        {"reason": "a\x00b"},
        {"reason": "why", "days": "9" * 5_000},
        {"reason": "why", "days": "1.5"},
        {"reason": "why", "days": "0"},
        {"reason": " "},
        {"reason": "x" * 501},
    ],
)
def test_a_bad_field_of_a_form_is_refused(asker: TestClient, form: dict[str, str]) -> None:
    """A form is checked like an address."""
    answer = asker.post("/pipelines/orders/silence", data=form, headers={"sec-fetch-site": "same-origin"})

    assert answer.status_code == 400
    assert ("days" if form["reason"] == "why" else "reason") in answer.text


def test_a_form_in_an_odd_encoding_is_refused(asker: TestClient) -> None:
    """What the form's own character set makes of a text is checked as well."""
    body = b'--b\r\nContent-Disposition: form-data; name="reason"\r\n\r\n+2AA-\r\n--b--\r\n'
    answer = asker.post(
        "/pipelines/orders/silence",
        content=body,
        headers={
            "sec-fetch-site": "same-origin",
            "content-type": "multipart/form-data; boundary=b; charset=utf-7",
        },
    )

    assert answer.status_code in (303, 400)


@pytest.mark.parametrize("error", [RuntimeError, RecursionError, ZeroDivisionError, MemoryError])
def test_whatever_fails_is_a_page_without_its_words(
    asker: TestClient,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: type[Exception],
) -> None:
    """A fault of ours shows neither stack nor text, which may hold a secret, and has the strict headers."""

    def fail(*_: object) -> None:
        raise error("password=geheim")

    monkeypatch.setattr("tieout.web.routes.health.health_of", fail)

    answer = asker.get("/")

    assert answer.status_code == 500
    assert {name.lower(): value for name, value in HEADERS.items()}.items() <= dict(answer.headers).items()
    assert "<h1>Internal Server Error</h1>" in answer.text
    assert "the log of the API server" in answer.text
    assert "geheim" not in answer.text
    assert "Traceback" not in answer.text
    assert error.__name__ in caplog.text


def test_a_list_that_cannot_begin_is_an_error_page_and_no_half_a_file(
    asker: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CSV file's first piece is read before the answer begins."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("password=geheim")

    monkeypatch.setattr("tieout.store.reader.Reader.windows", fail)

    answer = asker.get("/pipelines/orders/windows.csv")

    assert answer.status_code == 500
    assert "<h1>Internal Server Error</h1>" in answer.text


def test_an_address_of_no_page_says_so(asker: TestClient) -> None:
    """What leads nowhere gets a page with the way to the others."""
    answer = asker.get("/pipelines/..%2f/windows")

    assert answer.status_code == 404
    assert "There is no page at this address" in answer.text


def test_a_dag_of_another_name_has_a_tab(asker: TestClient) -> None:
    """Airflow shows the tab on every DAG; one whose name no pipeline can have is told so kindly."""
    answer = asker.get("/pipelines/Other-DAG.v2")

    assert answer.status_code == 200
    assert "No run of a pipeline of that name is stored" in answer.text

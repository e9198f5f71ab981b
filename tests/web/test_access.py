"""No page is given to whoever did not say who they are, or may not read the pipeline; nothing foreign runs in one."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from starlette.routing import Route
from tests.store.examples import run_id
from tests.web.conftest import ClientFor
from tests.web.stories import EVIL

from tieout.web.rendering import asset_version

HIDDEN = f"/runs/{run_id(51)}"
WINDOW = "2026-11-20T10:00:00Z/2026-11-20T11:00:00Z"

PAGES = {
    "static": f"/static/{asset_version()}/tieout.css",
    "health": "/",
    "pipeline": "/pipelines/secret_pipeline",
    "windows": "/pipelines/secret_pipeline/windows",
    "windows_csv": "/pipelines/secret_pipeline/windows.csv",
    "window": f"/pipelines/secret_pipeline/windows/{WINDOW}",
    "run": HIDDEN,
    "incidents": "/pipelines/secret_pipeline/incidents",
    "incidents_csv": "/pipelines/secret_pipeline/incidents.csv",
    "incident": f"{HIDDEN}/incident?id=incident-1",
    "breaks": f"{HIDDEN}/breaks",
    "trace": "/pipelines/secret_pipeline/trace?value=m-1",
    "breaks_csv": f"{HIDDEN}/breaks.csv",
    "data_docs": f"{HIDDEN}/data-docs",
}
"""One address of each route, about a pipeline that most may not read."""

ACTS = {"act_on_incident", "silence_pipeline"}
"""What changes something; `test_acts.py` looks at who may."""

OPEN_TO_ALL_USERS = ("static", "health")


def test_every_route_is_among_the_pages_of_these_tests(reader: TestClient) -> None:
    """A route that is added without a look at who may see it is noticed."""
    routes = {route.name for route in _app_routes(reader)}

    assert routes == set(PAGES) | ACTS


@pytest.mark.parametrize("name", PAGES)
def test_nobody_unknown_is_given_a_page(client_for: ClientFor, name: str) -> None:
    """Without credentials every route answers 401, and says nothing of what it would show."""
    answer = client_for("").get(PAGES[name])

    assert answer.status_code == 401
    assert "secret_pipeline" not in answer.text


@pytest.mark.parametrize("name", [name for name in PAGES if name not in OPEN_TO_ALL_USERS])
def test_whoever_may_not_read_the_pipeline_is_refused(reader: TestClient, name: str) -> None:
    """With credentials and without the right to the pipeline's DAG every route about it answers 403."""
    answer = reader.get(PAGES[name])

    assert answer.status_code == 403
    assert "2 messages lost" not in answer.text


def test_the_heat_map_leaves_out_what_the_user_may_not_read(
    reader: TestClient, client_for: ClientFor
) -> None:
    """Each user sees their own pipelines; a stranger sees none."""
    assert "secret_pipeline" not in reader.get("/").text
    assert "evil_pipeline" in reader.get("/").text
    assert "evil_pipeline" not in client_for("stranger").get("/").text


@pytest.mark.parametrize("name", ["health", "pipeline", "window", "run"])
def test_pages_run_and_load_nothing_foreign(reader: TestClient, name: str) -> None:
    """The policy of every answer, refusals too, allows this server's own files only, and no inline script or style."""
    answer = reader.get(PAGES[name])

    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert {policy["script-src"], policy["style-src"], policy["frame-ancestors"]} == {"'self'"}
    assert answer.headers["cache-control"] == "no-store"


class _Foreign(HTMLParser):
    """Collects what a page would run or load, and what its author did not write."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str | None] = []
        self.pictures: list[str] = []
        self.handlers: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note scripts, event handlers, styles and addresses."""
        given = dict(attrs)
        if tag == "script":
            self.scripts.append(given.get("src"))
        if tag in ("img", "iframe", "object", "embed", "base"):
            self.pictures.append(tag)
        self.handlers += [name for name in given if name.startswith("on") or name == "style"]
        self.addresses += [given[name] or "" for name in ("src", "href", "action") if name in given]


EVIL_RUN = f"/runs/{run_id(50)}"


@pytest.mark.parametrize(
    "page",
    [
        "/",
        "/pipelines/evil_pipeline",
        "/pipelines/evil_pipeline/windows",
        "/pipelines/evil_pipeline/incidents",
        f"/pipelines/evil_pipeline/windows/{WINDOW}",
        EVIL_RUN,
        f"{EVIL_RUN}/breaks?message={quote(EVIL)}&topic={quote(EVIL)}",
        f"{EVIL_RUN}/incident?id={quote(EVIL)}",
        f"/pipelines/evil_pipeline/trace?value={quote(EVIL)}",
        f"/pipelines/evil_pipeline/trace?by=key&value={quote(EVIL)}",
        f"/pipelines/evil_pipeline/trace?by=position&value={quote(EVIL)}/0/150",
        f"/pipelines/evil_pipeline/trace?by=position&value={quote(EVIL)}",
        f"/pipelines/{quote(EVIL)}",
        f"/?name={quote(EVIL)}",
        f"/runs/{quote(EVIL)}",
    ],
)
def test_a_script_in_an_id_stays_text(reader: TestClient, page: str) -> None:
    """Whatever comes from evidence, contract or address is escaped: the page has one script, its own."""
    answer = reader.get(page)
    found = _Foreign()
    found.feed(answer.text)

    assert EVIL not in answer.text
    assert [str(script).startswith("/static/") for script in found.scripts] == [True]
    assert found.handlers == []
    assert found.pictures == []
    assert found.addresses
    assert all(address.startswith(("/", "#", "?", "data:,")) for address in found.addresses)


def _app_routes(client: TestClient) -> list[Route]:
    return [route for route in client.app.routes if isinstance(route, Route)]  # type: ignore[attr-defined]

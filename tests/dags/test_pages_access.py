"""Airflow's own users and roles decide who sees the pages, which are mounted in its API server."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fastapi.testclient import TestClient
from tests.store.examples import CONTRACT, ORIGIN, breaks, partition, statement, store_named

from tieout.store import Store

ClientFor = Callable[[str | None], TestClient]
TRACE = "/tieout/pipelines/orders/trace?value=m-1"
WINDOW = "/tieout/pipelines/orders/windows/2026-11-20T10:00:00Z/2026-11-20T11:00:00Z"


@pytest.fixture(scope="module")
def client_for(postgres_url: str, airflow_database: None) -> Iterator[ClientFor]:
    """Gives a client of Airflow's API server whose token is of a user with a role, without one, or of nobody."""
    with pytest.MonkeyPatch.context() as patch, store_named(postgres_url, "pages_access") as url:
        Store(url).publish(
            statement(partitions=[{**partition("orders", 0), "offsets": None}]), breaks(), CONTRACT, ORIGIN
        )
        patch.setenv("TIEOUT_DATABASE_URL", url)
        patch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "a secret of these tests that is long enough for it")
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", "someone:viewer")
        from airflow.api_fastapi.app import create_app, get_auth_manager  # noqa: PLC0415 - after the environment
        from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser  # noqa: PLC0415

        app = create_app(apps="core")

        def client(role: str | None) -> TestClient:
            if role is None:
                return TestClient(app)
            user = SimpleAuthManagerUser(username="someone", role=None if role == "none" else role)
            token = get_auth_manager().generate_jwt(user)
            return TestClient(app, headers={"Authorization": f"Bearer {token}"})

        yield client


def test_nobody_sees_a_page(client_for: ClientFor) -> None:
    """Without a token Airflow's dependency answers, on every page."""
    for page in ("/tieout/", "/tieout/pipelines/orders", WINDOW, TRACE):
        assert client_for(None).get(page).status_code == 401
    wrong = {"Authorization": "Bearer nonsense"}
    assert client_for(None).get("/tieout/", headers=wrong).status_code in (401, 403)


def test_a_user_without_a_role_is_refused(client_for: ClientFor) -> None:
    """A user whom Airflow knows and gives no right sees no pipeline, nor that there is one."""
    client = client_for("none")

    assert client.get(WINDOW).status_code == 403
    assert client.get(TRACE).status_code == 403
    assert "orders" not in client.get("/tieout/").text


def test_a_viewer_reads_and_cannot_change(client_for: ClientFor) -> None:
    """The pages are shown without their forms, and links lead below the place where they are mounted."""
    page = client_for("VIEWER").get(WINDOW)

    assert page.status_code == 200
    assert "2 messages lost" in page.text
    assert 'href="/tieout/pipelines/orders"' in page.text
    assert "Judge this window again" not in page.text


def test_a_user_may_have_a_window_judged_again(client_for: ClientFor) -> None:
    """Whoever may change the DAG's runs is given the forms, which talk to Airflow's API at its root."""
    page = client_for("USER").get(WINDOW)

    assert "Judge this window again" in page.text
    assert 'data-api="/api/v2"' in page.text


def test_the_cookie_of_the_user_interface_is_enough(client_for: ClientFor) -> None:
    """Inside Airflow's pages no header is sent; its cookie says who asks."""
    token = client_for("VIEWER").headers["Authorization"].removeprefix("Bearer ")

    assert client_for(None).get(WINDOW, headers={"Cookie": f"_token={token}"}).status_code == 200

"""Services that tests of several parts share, and which tests go to one process where several run them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

import pytest
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from tieout.testing.postgres import running_postgres

TOGETHER: Final = ("tests/integration/kafka_topics/", "tests/integration/systems/")
"""Folders whose files share what takes long to start: each process that runs one of them would start it anew."""
APART: Final = ("tests/judging/test_golden_histories.py", "tests/judging/test_random_histories.py")
"""Files whose tests share nothing: as wholes they would keep one process busy when the others have ended."""


class ByFile(LoadFileScheduling):  # type: ignore[misc]  # xdist is untyped to us
    """Gives a process all tests of a file, and of a folder among `TOGETHER`; those of `APART` one by one."""

    def _split_scope(self, nodeid: str) -> str:
        file = cast(str, super()._split_scope(nodeid))
        if file in APART:
            return nodeid
        return next((folder for folder in TOGETHER if file.startswith(folder)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile | None:
    """Take the place of xdist's own `--dist loadfile`."""
    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A libpq URL of a real PostgreSQL of this session; tests make their own schemas or databases."""
    with running_postgres(tmp_path_factory.mktemp("postgres") / "data", {"fsync": "off"}) as url:
        yield url

"""`python -m tools.pages`: how long each page takes with a year of windows and a run of a million breaks.

Fills a PostgreSQL of its own by SQL, asks for each page three times, looks at what the database does for it and, with
`--browser`, loads it in a real browser. Everything is removed again. `--report` writes docs/reference/pages.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import uvicorn
from fastapi.testclient import TestClient

from tieout.testing.postgres import free_port
from tools.pages.asking import PAGES, Work, application, timed, work_of
from tools.pages.browsing import Loaded, browser
from tools.pages.filling import LEAST_BREAKS, Size, filled
from tools.stack.interrupts import INTERRUPTED, end_as_by_ctrl_c

_HEAD = """# How long the pages take

Written by `make pages`; do not edit.

{date}, on {cores} cores with a load of {load:.0f} when it ended. The store holds {windows:,} hourly windows of each of
{pipelines} pipelines, twelve partitions a window, and one run with {breaks:,} stored breaks in {incidents:,}
incidents, filled in {filled:.0f} s. *Server* is the median of three answers without a browser; *database* is the
time of the page's statements alone, and *rows* is what those looked at in tables and indexes. *Browser* is the time
from the address to the end of the load event in a headless Chromium with an empty profile.

| Page | Server, ms | Database, ms | Rows | kB | Browser, ms |
|---|---|---|---|---|---|
"""


def main() -> int:
    """Fill, measure and print, or with `--serve` only serve the store until interrupted."""
    options = _arguments()
    size = Size(options.pipelines, options.windows, options.breaks)
    began = time.monotonic()
    with filled(size) as url:
        seconds = time.monotonic() - began
        print(f"filled in {seconds:.0f} s", flush=True)
        if options.report or not options.serve:
            rows = _measured(url, options.browser)
            if options.report:
                options.report.write_text(_head(size, seconds) + "\n".join(rows) + "\n", encoding="utf-8")
        if options.serve:
            uvicorn.run(application(url), host="127.0.0.1", port=options.serve, log_level="warning")
    return 0


def _measured(url: str, program: str | None) -> list[str]:
    """Return a line of the table for each page, and print it."""
    loaded = _in_browser(program, url) if program else {}
    client = TestClient(application(url))
    rows = []
    for name, address in PAGES.items():
        work, (taken, content) = work_of(client, url, address), timed(client, address)
        rows.append(_row(name, taken, content, work, loaded.get(name)))
        print(rows[-1], flush=True)
    return rows


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pipelines", type=int, default=3)
    parser.add_argument("--windows", type=int, default=8760)
    parser.add_argument("--breaks", type=int, default=1_000_000, help=f"of one run; {LEAST_BREAKS:,} or more")
    parser.add_argument("--browser", metavar="PROGRAM", help="a Chromium that loads each page, too")
    parser.add_argument("--report", type=Path, help="the page to write")
    parser.add_argument(
        "--serve", type=int, metavar="PORT", help="serve on this port of 127.0.0.1; with --report, afterwards"
    )
    options = parser.parse_args()
    if options.breaks < LEAST_BREAKS:
        parser.error(f"--breaks: expected {LEAST_BREAKS} or more, found {options.breaks}")
    return options


def _head(size: Size, seconds: float) -> str:
    return _HEAD.format(
        date=datetime.now(UTC).date().isoformat(),
        cores=os.cpu_count(),
        load=os.getloadavg()[0],
        windows=size.windows,
        pipelines=size.pipelines,
        breaks=size.breaks,
        incidents=size.breaks // 20,
        filled=seconds,
    )


def _row(name: str, taken: float, content: int, work: Work, loaded: Loaded | None) -> str:
    in_browser = "-" if loaded is None else f"{loaded.seconds * 1000:,.0f}"
    numbers = [taken * 1000, work.milliseconds, work.rows, content / 1000]
    return f"| {name} | {' | '.join(f'{number:,.0f}' for number in numbers)} | {in_browser} |"


def _in_browser(program: str, url: str) -> dict[str, Loaded]:
    """Return each page as loaded in the browser.

    Raises:
        RuntimeError: if a page requests another server.
    """
    with _served(url) as root, browser(program) as tab:
        loaded_pages = {name: tab.load(root + address) for name, address in PAGES.items()}
    for name, loaded in loaded_pages.items():
        foreign = [address for address in loaded.requests if not address.startswith(f"{root}/")]
        if foreign:
            raise RuntimeError(f"{name}: expected requests to {root} only, found {', '.join(foreign)}")
    return loaded_pages


@contextmanager
def _served(url: str) -> Iterator[str]:
    """Yield the address of the pages while they are served."""
    port = free_port()
    server = uvicorn.Server(
        uvicorn.Config(application(url), host="127.0.0.1", port=port, log_level="warning")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


if __name__ == "__main__":
    end_as_by_ctrl_c()
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)

"""The style sheet: `color-scheme` alone chooses between light and dark, and so Airflow's own choice reaches it."""

from __future__ import annotations

import re

from tieout.web.rendering import asset


def test_every_colour_comes_for_light_and_for_dark() -> None:
    """A media query would follow the system where somebody chose the other in Airflow."""
    text = asset("tieout.css")
    sheet = text.decode() if isinstance(text, bytes) else text

    colours = re.findall(r"(--[\w-]+): ([^;]+);", sheet)

    assert len(colours) > 20
    assert [name for name, value in colours if not value.startswith("light-dark(")] == []
    assert "prefers-color-scheme" not in sheet


def test_a_paragraph_breaks_a_word_that_is_longer_than_the_screen() -> None:
    """A contract's digest would else widen the whole page beyond a narrow screen."""
    text = asset("tieout.css")
    sheet = text.decode() if isinstance(text, bytes) else text

    assert re.search(r"(^|\s)p \{ overflow-wrap: anywhere; \}", sheet)

"""The statement as a page: self-contained, accessible, and safe with whatever ids there are."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from tieout.reporting.page import render_html

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "\" onmouseover='alert(3)' x=\"",
    "</pre></style><style>*{display:none}",
    "{{ 7919 * 7919 }}{% raw %}",
    "a\x00b\u202ec\x1b[2J",
)
ALLOWED_TAGS = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "section", "h1", "h2", "p", "ul", "li",
    "dl", "dt", "dd", "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "details", "summary",
    "pre", "br", "span",
}  # fmt: skip
VOID = {"meta", "br"}


class Page(HTMLParser):
    """What a browser would make of the page: tags, their attributes, and whether they close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close a tag, which must be the innermost."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Collect the text."""
        self.text += data


def _spoiled(value: Any, text: str) -> Any:
    """Return the value with every free text in it replaced; fixed words and times stay."""
    fixed = {"verdict", "guarantee", "identity", "window", "generated_at", "status"}
    if isinstance(value, dict):
        return {key: item if key in fixed else _spoiled(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [_spoiled(item, text) for item in value]
    return text if isinstance(value, str) else value


def test_the_page_shows_what_the_statement_says(
    statement: dict[str, Any], lost_break: dict[str, Any]
) -> None:
    """Verdict, balance, incidents, breaks with their evidence, what was not judged, coverage and checks."""
    page = Page(render_html(statement, [lost_break]))

    assert page.open == []
    for shown in (
        "BROKEN: orders_to_warehouse", "the guarantee was broken", "lost: 3, none allowed", "orders-1",
        "17 to 19", "commit before process", "order-17", "REORDER_PRODUCER", "produced: sequence",
        "a.jsonl:7: torn line", "none allowed", "197",
    ):  # fmt: skip
        assert shown in page.text, shown


def test_the_page_needs_nothing_from_elsewhere(statement: dict[str, Any], lost_break: dict[str, Any]) -> None:
    """No script, no link, no image, no remote style; a policy of the page's own forbids them as well."""
    html = render_html(statement, [lost_break])
    page = Page(html)

    assert {tag for tag, _ in page.tags} <= ALLOWED_TAGS
    assert not {"src", "href", "action", "background"} & {name for _, found in page.tags for name in found}
    assert not re.search(r"url\(|@import|https?:", html)
    assert "default-src 'none'" in html
    assert "prefers-color-scheme: dark" in html


def test_every_table_names_its_columns_and_rows(
    statement: dict[str, Any], lost_break: dict[str, Any]
) -> None:
    """A screen reader can say which column and row a number belongs to."""
    page = Page(render_html(statement, [lost_break]))
    headers = [attributes for tag, attributes in page.tags if tag == "th"]

    assert headers
    assert all(header.get("scope") in ("col", "row") for header in headers)
    assert [tag for tag, _ in page.tags].count("thead") == [tag for tag, _ in page.tags].count("table")


def test_a_wide_table_scrolls_by_itself(statement: dict[str, Any], lost_break: dict[str, Any]) -> None:
    """On a narrow screen the page stays as wide as the screen: what holds texts of any length has its own bar."""
    page = render_html(statement, [lost_break])
    tables = re.findall(r"(<div[^>]*>)?\s*<table>\s*(<caption>)?", page)

    assert len(tables) > 5
    assert all('class="wide"' in around or caption for around, caption in tables)


def test_hostile_text_never_becomes_markup(statement: dict[str, Any], lost_break: dict[str, Any]) -> None:
    """Whatever stands in any text of statement and breaks, the page has the same tags and attributes."""
    expected = Page(render_html(statement, [lost_break])).tags
    assert HOSTILE

    for text in HOSTILE:
        html = render_html(_spoiled(statement, text), [_spoiled(lost_break, text)])

        assert Page(html).tags == expected, text
        assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", html)
        assert "62710561" not in html


def test_the_page_stays_readable_with_a_million_breaks(
    statement: dict[str, Any], lost_break: dict[str, Any]
) -> None:
    """Rows and texts are bounded, and the page says where the rest is."""
    statement |= {"breaks_total": 1_000_000, "incidents": statement["incidents"] * 10_000}
    statement["partitions"] *= 5_000
    lost_break |= {"message_id": "x" * 1_000_000, "evidence": {"produced": [{"key_hash": "y" * 1_000_000}]}}

    html = render_html(statement, [lost_break] * 1_000)

    assert len(html) < 8_000_000
    assert "The first 200 of 1000000" in html
    assert "The first 500 of 10000 incidents" in html
    assert "The first 200 of 10000; statement.json has all" in html

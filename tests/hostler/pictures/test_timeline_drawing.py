"""A timeline as a picture, and as a page."""

import itertools
import random
import re
from html.parser import HTMLParser
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.pictures.page import timeline_html
from hostler.pictures.timeline import Timeline
from hostler.pictures.timeline_drawing import timeline_svg
from store.lifecycle import Status
from tests.hostler.pictures.support import SVG, Story, by_chance, parsed, words

EVIL = "</title><script>alert(1)</script> \u202e\x1b]&\"'\ufffe übér \U0001f3ac"


def worked(*names: tuple[str, str | None]) -> Timeline:
    story = Story([(key, label, False) for key, label in names])
    story.claim()
    for key, _ in names:
        ticket = story.start(key, after_s=0.5, cpu=1, ffmpeg=2)
        story.move(key, Status.COMPLETED, after_s=1)
        story.release(key, ticket)
    return story.told(status="completed")


def rectangles(root: Element) -> list[tuple[float, float, float, float]]:
    found = [element for element in root.iter(SVG + "rect") if "patternUnits" not in element.attrib]
    return [tuple(float(each.get(name, "0")) for name in ("x", "y", "width", "height")) for each in found]  # type: ignore[misc]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 32))
def test_everything_that_is_drawn_lies_on_the_paper(seed: int) -> None:
    root = parsed(timeline_svg(by_chance(random.Random(seed))))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for x, y, wide, high in rectangles(root):
        assert wide >= 0
        assert high >= 0
        assert x >= 0
        assert x + wide <= width + 0.02
        assert y >= 0
        assert y + high <= height + 0.02
    for text in root.iter(SVG + "text"):
        assert 0 < float(text.attrib["y"]) <= height


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 32))
def test_what_is_held_is_never_drawn_above_the_line_of_the_capacity(seed: int) -> None:
    timeline = by_chance(random.Random(seed))
    root = parsed(timeline_svg(timeline))
    dashed = [
        float(line.attrib["d"].split(",")[1].split()[0])
        for line in root.iter(SVG + "path")
        if line.get("stroke-dasharray") == "4 3"
    ][1:]  # the first is in the legend
    tops = [float(y) for path in root.iter(SVG + "path") for y in re.findall(r"V([\d.]+) H", path.get("d", ""))]
    assert len(dashed) == len(timeline.bands)
    for line in dashed:
        foot = line + 40
        assert all(top >= line - 0.01 for top in tops if line - 14 < top < foot)


def test_odd_names_are_text_and_nothing_else() -> None:
    key = "a/" + "b" * 253
    story = Story([(key, EVIL, False), ("a/" + "b" * 252 + "c", None, False)])
    story.claim()
    story.start(key, cpu=1)
    timeline = story.told(title=EVIL, status=EVIL)
    root = parsed(timeline_svg(timeline))
    assert any("<script>alert(1)</script> \\u202e\\x1b]&\"'\ufffd übér \U0001f3ac" in word for word in words(root))
    shown = [word for word in words(root) if word.startswith("a/bbb") and len(word) < 40]
    assert len(set(shown)) == 2
    assert all(len(word) <= 36 for word in shown)
    page = timeline_html(timeline)
    assert "<script" not in page
    assert "\x1b" not in page


def test_the_same_run_gives_the_same_bytes() -> None:
    assert timeline_svg(worked(("a", None))) == timeline_svg(worked(("a", None)))


def test_the_picture_tells_what_its_colours_mean_and_in_which_units_it_counts() -> None:
    found = words(parsed(timeline_svg(worked(("a", None), ("b", None)))))
    for said in (
        "waited for room in its host", "ran", "held", "capacity of the machine now", "seconds",
        "time since the run was created, on 2023-11-14 at 22:13:20 UTC", "completed, 1.0 s", "at most 1 of 4 held",
        "at most 2 of 2 held", "a ran: 1.0 s, from 0.600 s to 1.600 s",
        "cpu: 1 held by a: 1.0 s, from 0.600 s to 1.600 s",
    ):  # fmt: skip
        assert said in found, said
    assert "waited for a person" not in found


@pytest.mark.parametrize("count", [0, 1, 500])
def test_it_is_readable_for_any_number_of_nodes(count: int) -> None:
    names = [(f"season/{number:03d}", None) for number in range(count)]
    root = parsed(timeline_svg(worked(*names)))
    rows = sorted(
        float(text.attrib["y"])
        for text in root.iter(SVG + "text")
        if (text.text or "").startswith("season/") and text.get("text-anchor") == "end"
    )
    assert len(rows) == count
    assert all(after - before >= 17.9 for before, after in itertools.pairwise(rows))
    assert len(timeline_svg(worked(*names))) < 20_000 + 1500 * count


def test_a_run_that_goes_on_says_so() -> None:
    story = Story([("a", None, False), ("b", None, True)])
    story.claim()
    story.start("a")
    root = parsed(timeline_svg(story.told(running=True)))
    assert "running · 2 nodes · 1.2 s since it was created" in words(root)
    assert "a ran, and goes on: 1.0 s, from 0.200 s to 1.200 s" in words(root)


class Tags(HTMLParser):
    """Counts elements, and finds those that are never closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.rows += tag == "tr"
        if tag not in {"meta", "link"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_holds_the_picture_and_all_of_it_as_a_table() -> None:
    page = timeline_html(worked(("a", None), ("b", "<b>")))
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.rows == 3
    assert "default-src 'none'" in page
    assert '<th scope="row"><code>b</code> &lt;b&gt;</th><td>completed, 1.0 s</td>' in page

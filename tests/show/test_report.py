"""The report: complete without a network, harmless whatever a problem is called, drawn by a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import factorfield as ff
from factorfield.errors import Advice
from factorfield.show.report.page import page, write

HOSTILE = '</title><script>alert("x")</script><img src=x onerror=alert(1)>'
VOID = {"meta", "input", "br", "img"}


class Reader(HTMLParser):
    """Checks that tags close in order; keeps tags and the embedded numbers."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.numbers = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][1].get("id") == "numbers" and self.open[-1:] == ["script"]:
            self.numbers += data

    def with_attribute(self, name: str, value: str) -> list[dict[str, str | None]]:
        return [attributes for _, attributes in self.tags if attributes.get(name) == value]


def moving(name: str = "heat") -> ff.Solution:
    known = ff.problems.get("heat", noise=0.1, labels=48)
    renamed = ff.Problem(
        known.equations, known.domain, known.parameters, known.conditions, truth=known.truth, name=name
    )
    return ff.solve(renamed)


SHAPES = {  # what the page draws for each
    "reaction-coefficient": {"lines", "spread", "coefficient", "reliability", "pit"},
    "hare-lynx": {"lines", "spread", "coefficient"},
    "heat": {"lines", "overview-mean", "overview-std", "overview-error", "reliability", "pit"},
    "poisson-2d": {"plane-mean", "plane-std", "plane-error", "reliability", "pit"},
    "heat-2d": {"plane-mean", "plane-std", "plane-error", "reliability", "pit"},
}


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_gets_its_sections_and_asks_for_nothing_outside(name: str) -> None:
    solution = ff.solve(ff.problems.get(name))
    text = page(solution)
    read = Reader(text)
    assert {attributes["data-draw"] for _, attributes in read.tags if "data-draw" in attributes} == SHAPES[name]
    outside = [url for url in re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'<]*", text) if "www.w3.org" not in url]
    assert outside == [] and not read.with_attribute("rel", "stylesheet")
    assert all("src" not in attributes and "href" not in attributes for _, attributes in read.tags)
    order = [
        text.index(f"<h2>{title}") for title in ("Problem", "Data and", "Field", "Uncertainty", "Settings", "Work")
    ]
    assert order == sorted(order) and text.index('class="status') < order[0]
    numbers = json.loads(read.numbers)
    frames = len(solution.problem.truth.t) if name in ("heat", "heat-2d") else 0
    sliders = read.with_attribute("type", "range")
    assert [int(slider["max"] or 0) + 1 for slider in sliders] == ([frames] if frames else [])
    assert len(numbers["coefficients"]) == len(solution.parameters)
    if sliders:
        assert read.with_attribute("for", sliders[0]["id"] or "")  # it has a label


def test_hostile_names_stay_text() -> None:
    solution = moving(HOSTILE)
    read = Reader(page(solution))
    assert [tag for tag, _ in read.tags].count("script") == 2 and "img" not in {tag for tag, _ in read.tags}
    assert "<" not in read.numbers


def test_warnings_are_stored_told_again_and_come_first(tmp_path: Path) -> None:
    few = ff.Problem(
        "u_t + b*u_x", {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}, {"b": 0.4},
        [ff.Observations(x=[0.1, 0.5], t=0.0, u=[0.0, 1.0], sigma=0.1)],
    )  # fmt: skip
    with pytest.warns(ff.AdviceWarning, match="details of the field"):
        solution = ff.solve(few)
    assert solution.warnings is not None and "details of the field" in solution.warnings[0]
    stored = ff.load(solution.save(tmp_path / "run.nc"))
    assert stored.warnings == solution.warnings and stored.versions == solution.versions
    text = page(stored)
    assert text.index("1 warning<") < text.index("details of the field at its start") < text.index("<h2>Problem")
    assert ff.solve(ff.problems.get("heat")).warnings == ()


def small(seen: float = 0.55, scale: float = 1.0, units: dict[str, str] | None = None) -> ff.Solution:
    """Almost a line between two walls, and measurements: on it (0.55), or far from it."""
    problem = ff.Problem(
        "u_xx = k", {"x": ff.Interval(0, scale)}, {"k": ff.Unknown(0.0, 0.1 / scale**2)},
        [ff.Boundary("u = 0", at={"x": 0}, sigma=1e-3), ff.Boundary("u = 1", at={"x": scale}, sigma=1e-3),
         ff.Observations(x=[0.54 * scale, 0.56 * scale], u=[seen, seen], sigma=0.01)], units=units,
    )  # fmt: skip
    return ff.solve(problem)


@pytest.mark.filterwarnings("ignore:the unknown 'k' lies:factorfield.AdviceWarning")
def test_data_that_the_solution_misses_are_a_warning_at_the_top() -> None:
    with pytest.warns(ff.AdviceWarning, match="missed by more than chance"):
        solution = small(seen=0.9)
    assert "does not explain" not in page(solution)  # once is enough
    others = tuple(advice for advice in solution.advice or () if advice.kind != "contradiction")
    text = page(replace(solution, advice=(*others, Advice("modes", "observations of u", "x"))))
    assert "does not explain the observations of u" in text  # advice of another kind does not say so
    text = page(replace(solution, advice=()))  # methods that give no advice
    assert text.index("1 warning<") < text.index("does not explain the observations of u") < text.index("<h2>Problem")
    assert "No warnings" not in text and "does not explain" not in page(small())


def test_the_headline_is_in_plain_words_and_the_methods_own_below_it() -> None:
    text = page(small())
    head = text[text.index('role="status"') : text.index("</div>", text.index('role="status"'))]
    assert head.index("<strong>Converged: ") < head.index('<p class="quiet">')


def test_units_stand_beside_axes_fields_and_coefficients() -> None:
    text = page(small(units={"x": "m", "u": "<i>V</i>", "k": "V m-2"}))
    numbers = json.loads(Reader(text).numbers)
    assert numbers["field"]["axes"][0]["unit"] == "m" and numbers["coefficients"][0]["unit"] == "V m-2"
    assert "<th>units</th>" in text and "from 0 to 1 m" in text and "<i>V</i>" not in text
    assert "<th>units</th>" not in page(small())


def test_the_command_writes_a_page_here_and_needs_no_matplotlib(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    moving().save(tmp_path / "there" / "run.nc")
    code = "import sys; sys.modules['matplotlib'] = None; from factorfield.cli.app import main; main()"

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-c", code, "report", *arguments]
        return subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=300)

    done = command("there/run.nc")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run.html").read_text().startswith("<!DOCTYPE html>")
    (tmp_path / "run.html").unlink()
    (tmp_path / "text.nc").write_text("no solution")
    for arguments, words in {
        ("none.nc",): "which does not exist",
        ("text.nc",): "a file written by solution.save",
        ("there/run.nc", "--out", "run.pdf"): "run.html",
        ("there/run.nc", "--out", "no/run.html"): "existing folder",
    }.items():
        done = command(*arguments)
        assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["text.nc", "there"]


# -- in a browser


@pytest.fixture(scope="module")
def browser() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    return found


def opened(browser: str, address: str, profile: Path) -> tuple[str, str]:
    """The page's DOM after its script ran, and what the console said."""
    line = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--window-size=500,900",
        f"--user-data-dir={profile}", "--dump-dom", address,
    ]  # fmt: skip
    done = subprocess.run(line, capture_output=True, text=True, timeout=120)
    return done.stdout, "\n".join(part for part in done.stderr.splitlines() if "CONSOLE" in part)


def test_a_browser_draws_the_page_and_the_slider_moves_the_picture(browser: str, tmp_path: Path) -> None:
    solution = moving(HOSTILE)
    path = write(solution, tmp_path / "run.html")
    drawn = {}
    for time in (0.0, 0.5):
        dom, console = opened(browser, f"{path.as_uri()}#t={time}", tmp_path / "profile")
        assert console == "" and dom.count("</svg></div>") == 6
        drawn[time] = float(re.search(r'data-middle="([^"]+)"', dom)[1])  # type: ignore[index]
        x = solution.problem.truth.x[::2]
        expected = float(solution.predict(x=x, t=[time])["mean"].values.ravel()[len(x) // 2])
        assert drawn[time] == pytest.approx(expected, rel=1e-4)  # single precision, six digits
    assert drawn[0.0] != drawn[0.5]


def test_tick_numbers_tell_ticks_apart_and_leave_room_for_labels(browser: str, tmp_path: Path) -> None:
    path = write(small(scale=1.234e5, units={"x": "km"}), tmp_path / "run.html")
    dom, console = opened(browser, path.as_uri(), tmp_path / "profile")
    assert console == "" and "10⁵" in dom and " (km)" in dom
    for picture in re.findall(r"<svg.*?</svg>", dom):
        numbers = [
            (y, said) for y, said in re.findall(r'<text x="[^"]*" y="([^"]*)" text-anchor="middle" >(.*?)<', picture)
        ]
        assert len(numbers) == len(set(numbers))
        beside = re.findall(r'<text x="([^"]*)" y="[^"]*" text-anchor="end" >(.*?)<', picture)
        assert all(float(x) - 7.5 * len(said) >= 18 for x, said in beside)  # the label ends there


def test_a_phone_needs_no_sideways_scrolling(browser: str, tmp_path: Path) -> None:
    text = page(moving())
    # headless windows are at least 500 px wide: the body is made 390 px instead, and says how much it needs
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "<style>html { width: 390px; }</style>", text)
    said = "document.body.dataset.needs = document.body.scrollWidth;"
    (tmp_path / "run.html").write_text(text.replace("</body>", f"<script>{said}</script></body>"))
    dom, console = opened(browser, (tmp_path / "run.html").as_uri(), tmp_path / "profile")
    assert console == "" and int(re.search(r'data-needs="(\d+)"', dom)[1]) <= 390  # type: ignore[index]


def test_the_policy_blocks_every_script_but_ours(browser: str, tmp_path: Path) -> None:
    injected = page(moving()).replace("</main>", "</main><script>document.title = 'taken over'</script>")
    (tmp_path / "run.html").write_text(injected)
    dom, console = opened(browser, (tmp_path / "run.html").as_uri(), tmp_path / "profile")
    assert "<title>taken over" not in dom and "Content Security Policy" in console and dom.count("</svg></div>") == 6

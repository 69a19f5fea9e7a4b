"""The report page in a real browser: both widths, light and dark, no network, nothing wider than the screen."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Cli

RUN = ROOT / "tests/data/runs/leaves"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        program = BROWSER or playwright.chromium.executable_path
        if not Path(program).exists():
            pytest.skip("no Chromium on this machine")
        chromium = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def page_file(cli: Cli, tmp_path: Path) -> Path:
    """The page of a recorded run, written by the command."""
    run = tmp_path / "leaves"
    shutil.copytree(RUN, run)
    done = cli("report", run, "--html")
    if "no report page" in done.stderr:
        pytest.skip("this build has no page in it: run scripts/build-web")
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()) == run / "report.html"
    return run / "report.html"


@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_shows_the_run_without_network(browser: Any, page_file: Path, width: int, scheme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page_file.as_uri())

    assert page.locator("#verdict h2").inner_text() == "Verdict: data bound"
    assert "stoker.accelerate" in page.locator("#verdict pre").first.inner_text()
    assert page.locator("#phases tbody tr").last.inner_text().split("\t")[1] == "100.0 %"
    assert page.locator("canvas").count() == 3
    painted = "c => new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer).some(p => p)"
    assert all(page.locator("canvas").nth(i).evaluate(painted) for i in range(3))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("[...document.querySelectorAll('section')].every(s => s.querySelector('h2'))")
    assert said == []
    assert asked == [page_file.as_uri()]
    context.close()


def test_the_chart_zooms_by_keyboard_and_shows_all_again(browser: Any, page_file: Path) -> None:
    page = browser.new_page()
    page.goto(page_file.as_uri())
    chart = page.locator("#timeline .chart")
    show_all = page.locator("#timeline button")
    assert show_all.is_hidden()
    chart.focus()
    page.keyboard.press("+")
    assert show_all.is_visible()
    page.keyboard.press("0")
    assert show_all.is_hidden()
    page.close()


def test_the_fix_can_be_copied(browser: Any, page_file: Path) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(page_file.as_uri())
    page.get_by_role("button", name="Copy the line").first.click()
    page.get_by_text("Copied").wait_for(timeout=5000)
    context.close()

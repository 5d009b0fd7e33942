"""Pages are opened in the system's Chromium from files, as their readers open them."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Closed with each file: while Playwright is there, it keeps a loop running in which nobody can run another."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on the PATH (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


class Opened:
    """A page, and what it did that nobody should do: requests, and lines on the console."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", self._requested)
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))

    def _requested(self, request: Request) -> None:
        if not request.url.startswith(("data:", "blob:")):
            self.requests.append(request.url)


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Opens HTML from a file, with whatever a browser can be told of its screen and its user's preferences."""
    contexts = []

    def open_html(html: str, **preferences: object) -> Opened:
        file = tmp_path / "page.html"
        file.write_text(html, encoding="utf-8")
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **preferences})  # type: ignore[arg-type]
        contexts.append(context)
        context.set_default_timeout(120_000)  # on a machine that does other things too
        opened = Opened(context.new_page())
        opened.page.goto(file.as_uri())
        return opened

    yield open_html
    for context in contexts:
        context.close()

"""The picture of the simulator's page in the README: runs an example, opens its report in Chromium, and takes it.

python tools/screenshot.py                      # writes docs/images/simulation.png
python tools/screenshot.py SCENARIO PICTURE
"""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from mooring.cli.main import run

ROOT = Path(__file__).resolve().parent.parent
SCENARIO = ROOT / "examples" / "simulations" / "two-teams.yaml"
PICTURE = ROOT / "docs" / "images" / "simulation.png"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
PART = "#figures, #backlog, #waiting, #cluster, #gantt, #allocation figure:not(.wide), details, .note, .command"
"""What is hidden: beside text, a picture of a part says more."""


def main(scenario: Path = SCENARIO, picture: Path = PICTURE) -> int:
    chromium = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if chromium is None:
        print("screenshot: no Chromium on the PATH (Debian: apt-get install chromium)", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "out.html"
        code = run(["simulate", str(scenario), "--report", str(page)])
        if code:
            return code
        picture.parent.mkdir(parents=True, exist_ok=True)
        take(chromium, page, picture)
    print(f"wrote {picture}")
    return 0


def take(chromium: str, page: Path, picture: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        opened = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
        opened.goto(page.as_uri())
        opened.wait_for_selector("html[data-drawn]")
        opened.add_style_tag(content=PART + " { display: none; }")
        opened.screenshot(path=picture, full_page=True)
        browser.close()


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))

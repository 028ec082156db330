"""Write the pictures of docs/page.md: `python docs/build_screenshots.py`. Needs chromium and the development tools."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.server.conftest import serving  # noqa: E402
from tests.server.page_world import fill  # noqa: E402

from wellworn import Scope  # noqa: E402

WIDTH = 860


def main() -> None:
    with serving(local=Scope(user="ada", agent="deployer"), embedder="static") as running, sync_playwright() as play:
        ids = fill(running.service.memory)
        browser = play.chromium.launch(executable_path=shutil.which("chromium"))
        for name, scheme, height, address in (
            ("search", "light", 560, "/?q=where+did+Ada+live+before%3F"),
            ("entry", "dark", 760, f"/ui/entries/{ids['oslo']}"),
            ("review", "light", 600, "/ui/review"),
        ):
            page = browser.new_page(
                base_url=running.url, color_scheme=scheme, viewport={"width": WIDTH, "height": height}
            )
            page.goto(address)
            page.screenshot(path=ROOT / "docs" / f"page-{name}.png")
        browser.close()


if __name__ == "__main__":
    main()

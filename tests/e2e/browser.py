"""Drives a real Chromium as a person does, and takes pictures of what that person sees."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from tests.processes import ROOT

PICTURES = ROOT / "test-artifacts"
"""Where the pictures go; people look at them."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDTH, HEIGHT = 1440, 900
CUT_ONCE = """
let count = 0;
const whole = window.fetch;
window.fetch = async (address, options) => {
  const answer = await whole(address, options);
  if (!/runs.*events/.test(address)) return answer;
  document.documentElement.dataset.streams = ++count;
  if (count > 1) return answer;
  const cutting = new TransformStream({
    transform(bytes, out) {
      out.enqueue(bytes.slice(0, 150));
      out.error(new TypeError("the line is cut"));
    },
  });
  return new Response(answer.body.pipeThrough(cutting), answer);
};
"""
"""Cuts the first stream of a run's events, in the middle of one."""
BOUND_MS = 15_000
"""The longest wait for something that is bound to appear."""


class NoBrowserError(Exception):
    """Says that there is no Chromium here, and how to get one."""


def browser_path() -> str:
    """Return where the browser is.

    Raises:
        NoBrowserError: nowhere.
    """
    for name in NAMES:
        found = shutil.which(name)
        if found:
            return found
    raise NoBrowserError("install the package `chromium`; `make test` does so where it may")


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Run a browser with a profile of its own while the block runs."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path(), args=[*ARGUMENTS], headless=True
        )
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """Is one person at the page: what they see, and what the browser complains about."""

    def __init__(self, page: Page, key: str) -> None:
        """Take a page of the browser, which knows the address of the door, and who they are."""
        self.key = key
        self.page = page
        self.complaints: list[str] = []
        page.set_default_timeout(BOUND_MS)
        page.on("console", self._told)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def open(self, place: str = "") -> None:
        """Open a view, and wait until the gateway is heard."""
        self.page.goto(f"/#/{place}")
        self.page.wait_for_selector("#line[data-state=open]")

    def turn_to(self, view: str) -> None:
        """Go to another view by its link."""
        self.page.click(f"nav a[data-view='{view}']")

    def ask(self, question: str, agent: str = "auto") -> None:
        """Ask a question."""
        self.page.wait_for_selector(f"#agent option[value='{agent}']", state="attached")
        self.page.select_option("#agent", agent)
        self.page.fill("#question", question)
        self.page.click("[data-testid=submit]")

    def ended(self, *statuses: str) -> None:
        """Wait until the run that is shown has ended so."""
        wanted = ", ".join(f".run-head [data-status={status}]" for status in statuses)
        self.page.wait_for_selector(wanted)

    def use_key(self, key: str) -> None:
        """Show an operator's key, and wait until it is taken."""
        self.turn_to("operator")
        self.page.fill("#operator-key", key)
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector("[data-testid=authority][data-may=true]")

    def start(self, question: str, agent: str) -> str:
        """Start a run beside the page; return its id."""
        body = json.dumps({"question": question, "agent": agent})
        headers = {"content-type": "application/json", "authorization": f"Bearer {self.key}"}
        started = self.page.request.post("/v1/runs", data=body, headers=headers)
        assert started.status == 202, started.text()
        return str(started.json()["id"])

    def focused(self) -> str:
        """Return the id of what the keyboard speaks with."""
        return str(self.page.evaluate("document.activeElement.id"))

    def hops(self) -> list[str]:
        """Return the hops of the waterfall, from top to bottom."""
        # At once: rows come and go while a run travels.
        found: list[str] = self.page.locator("[data-testid=waterfall] tbody tr").evaluate_all(
            "rows => rows.map((row) => row.dataset.hop)"
        )
        return found

    def picture(self, name: str) -> None:
        """Take a picture of the whole page."""
        PICTURES.mkdir(exist_ok=True)
        self.page.screenshot(path=PICTURES / f"page-{name}.png", full_page=True)

    def _told(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)


@contextmanager
def visiting(
    browser: Browser,
    url: str,
    *,
    language: str = "en-US",
    scheme: Literal["dark", "light"] = "light",
    width: int = WIDTH,
    height: int = HEIGHT,
    key: str = "",
) -> Iterator[Visit]:
    """Give a visit of the page while the block runs, with nothing kept from the one before."""
    context = browser.new_context(
        base_url=url,
        locale=language,
        color_scheme=scheme,
        viewport={"width": width, "height": height},
        reduced_motion="reduce",
    )
    try:
        if key:
            context.add_init_script(f"sessionStorage.setItem('sixhop.key', {json.dumps(key)})")
        yield Visit(context.new_page(), key)
    finally:
        context.close()

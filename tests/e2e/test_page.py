"""Tests the page at `/` in a real Chromium, against a suite whose provider is simulated."""

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FilePayload, expect
from pypdf import PdfReader

from services.runtime.topology import DOMAIN, GATEWAY
from tests.e2e.browser import CUT_ONCE, Visit, running_browser, visiting
from tests.e2e.page_house import KEY, House, running_house
from tests.requirements import requirement

REPORT = "Show me revenue by region as a report"
REPORT_ZH = "请按地区生成营收报告"
CHAIN = {"gateway", "routing", "domain", "tool", "model", "llm"}
SLOW_RUNS = 3
"""So many slow calls open a breaker."""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Return the suite of this module."""
    with running_house(tmp_path_factory.mktemp("page")) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return the browser of this module."""
    with running_browser() as running:
        yield running


@pytest.fixture
def visit(house: House, browser: Browser) -> Iterator[Visit]:
    """Return a visit of acme's in English; the browser may complain of nothing."""
    with visiting(browser, house.suite.url, key=house.acme) as opened:
        yield opened
        assert opened.complaints == []


@requirement("page:ask")
def test_a_question_travels_six_hops_before_ones_eyes_and_its_files_can_be_opened(
    visit: Visit, tmp_path: Path
) -> None:
    page = visit.page
    visit.open()
    visit.picture("1-empty")
    visit.ask(REPORT)
    expect(page.locator(".run-head [data-status=running]")).to_be_visible()
    visit.ended("ok", "degraded")

    # What the hops have reported: no row is a guess any more.
    assert set(visit.hops()) == CHAIN
    given = page.locator("[data-testid=waterfall] tbody tr td:nth-child(3)").all_inner_texts()
    assert all(text and text != "–" for text in given)
    expect(page.locator("[data-testid=answer]")).to_contain_text("Revenue by region")
    expect(page.locator("figure.image img")).to_be_visible()
    assert page.evaluate("document.querySelector('figure.image img').naturalWidth") > 400
    visit.picture("2-report")
    with page.expect_popup() as popup:
        page.click("figure.document a[target=_blank]")
    popup.value.wait_for_load_state()
    assert popup.value.evaluate("document.contentType") == "application/pdf"
    popup.value.close()
    with page.expect_download() as download:
        page.click("figure.document a[download]")
    saved = tmp_path / "report.pdf"
    download.value.save_as(saved)
    assert "Revenue by region" in PdfReader(saved).pages[0].extract_text()


@requirement("page:languages", "page:themes")
def test_it_is_all_there_in_chinese_and_in_the_dark(house: House, browser: Browser) -> None:
    with visiting(
        browser, house.suite.url, key=house.acme, language="zh-CN", scheme="dark"
    ) as visit:
        page = visit.page
        visit.open()
        expect(page.locator("html")).to_have_attribute("lang", "zh")
        expect(page.locator("h1")).to_have_text("提一个问题")
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        visit.ask(REPORT_ZH)
        visit.ended("ok", "degraded")
        expect(page.locator("[data-testid=answer]")).to_contain_text("营收")
        visit.picture("3-report-zh-dark")
        visit.turn_to("dependencies")
        expect(page.locator("[data-testid=dependencies]")).to_contain_text("闭合")
        visit.picture("4-dependencies-zh-dark")
        # The choice of the reader is kept when the page is loaded anew, against the system's.
        page.click("#theme")
        page.click("#language")
        page.reload()
        expect(page.locator("h1")).to_have_text("Dependencies")
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")

        assert dark != light
        assert visit.complaints == []


@requirement("page:dependencies")
def test_a_breaker_is_seen_to_open_while_a_tool_is_slow_and_to_close_when_it_is_well(
    visit: Visit, tmp_path: Path
) -> None:
    page = visit.page
    question = f"hatch {json.dumps({'folder': str(tmp_path)})}"
    visit.open()
    for _ in range(SLOW_RUNS - 1):
        visit.start(question, "probe_tool")
    visit.ask(question, "probe_tool")
    # Live, before anyone has reported: the tool is being waited for.
    expect(page.locator("[data-testid=waterfall] tr.running[data-hop=tool]")).to_be_visible()
    expect(page.locator("[data-testid=waterfall] tr[data-hop=domain]")).to_contain_text("silent")
    visit.picture("5-slow-tool")
    visit.turn_to("dependencies")
    line = page.locator(f"tr[data-caller={DOMAIN}][data-dependency='tool/hatch']")
    expect(line).to_have_attribute("data-breaker", "open")
    expect(page.locator(".chain [data-hop=domain]")).to_have_class("node serving sick")
    expect(page.locator("[data-testid=changes]")).to_contain_text("tool/hatch: breaker open")
    visit.picture("6-breaker-open")
    (tmp_path / "open").touch()
    expect(line).to_have_attribute("data-breaker", "half_open")
    visit.start(question, "probe_tool")

    expect(line).to_have_attribute("data-breaker", "closed")


@requirement("page:ask")
def test_where_another_model_took_over_is_marked_on_its_row(visit: Visit) -> None:
    page = visit.page
    visit.open()
    visit.ask("Tell me something. [sim: reset?at_token=5]", "chat")
    visit.ended("degraded")

    rows = "[data-testid=waterfall] tr"
    assert "model_backup" in visit.hops()
    expect(page.locator(f"{rows}.failed[data-hop=model]")).to_be_visible()
    expect(page.locator(f"{rows}[data-hop=model_backup] .on-track.restarted")).to_be_visible()
    expect(page.locator("[data-testid=happened]")).to_contain_text("restarted")
    expect(page.locator("[data-testid=happened]")).to_contain_text("backup")
    visit.picture("15-another-model")


@requirement("page:lines")
def test_a_stream_that_is_cut_is_taken_up_where_it_was(visit: Visit, tmp_path: Path) -> None:
    page = visit.page
    page.add_init_script(CUT_ONCE)
    run = visit.start(f"hatch {json.dumps({'folder': str(tmp_path)})}", "probe_tool")
    visit.open(f"runs/{run}")
    page.wait_for_selector("html[data-streams='2']", state="attached")
    (tmp_path / "open").touch()
    visit.ended("ok")
    shown = page.locator("[data-testid=events] li b").all_inner_texts()
    headers = {"authorization": f"Bearer {visit.key}"}
    told = page.request.get(f"/v1/runs/{run}/events", headers=headers).text()
    kinds = [line[7:] for line in told.splitlines() if line.startswith("event: ")]
    answer = page.request.get(f"/v1/runs/{run}", headers=headers).json()["answer"]["text"]

    # Nothing twice, and nothing left out.
    assert "text_delta" in kinds
    # Pieces of text that follow one another are shown as one; the end is no event of the run.
    assert shown == [kind for kind, _ in groupby(kinds) if kind != "ended"]
    assert page.locator("[data-testid=answer]").inner_text() == answer


@requirement("page:lines")
def test_a_gateway_that_is_silent_is_shown_so_until_it_is_heard_again(
    house: House, visit: Visit
) -> None:
    visit.open()
    with house.suite.stopped(GATEWAY):
        visit.page.wait_for_selector("#line[data-state=lost]")
        visit.picture("18-line-lost")
    visit.page.wait_for_selector("#line[data-state=open]")


@requirement("page:runs")
def test_recent_runs_are_found_by_status_and_agent_and_each_has_a_page(visit: Visit) -> None:
    page = visit.page
    visit.open()
    well = visit.start("What can you do?", "chat")
    sick = visit.start('nothing {"x": 1}', "probe_tool")
    visit.turn_to("runs")
    rows = "[data-testid=runs] tbody tr"
    expect(page.locator(f"tr[data-key='{well}']")).to_have_attribute("data-status", "ok")
    expect(page.locator(f"tr[data-key='{sick}']")).to_have_attribute("data-status", "failed")
    page.select_option("select[name=status]", "failed")
    expect(page.locator(f"tr[data-key='{well}']")).to_have_count(0)
    expect(page.locator(f"tr[data-key='{sick}']")).to_be_visible()
    page.select_option("select[name=agent]", "probe_tool")
    expect(page.locator(f"{rows}:not([data-agent=probe_tool])")).to_have_count(0)
    expect(page.locator(f"{rows}:not([data-status=failed])")).to_have_count(0)
    visit.picture("7-runs")
    page.click(f"tr[data-key='{sick}'] a")

    expect(page.locator("[data-testid=problem]")).to_contain_text("NOT_FOUND")
    expect(page.locator("[data-testid=events]")).to_contain_text("step_started")
    assert set(visit.hops()) == CHAIN
    visit.picture("8-run-failed")


@requirement("page:operator")
def test_an_operator_closes_the_door_and_holds_a_breaker_after_being_asked(
    house: House, browser: Browser
) -> None:
    with visiting(browser, house.suite.url, key=house.acme) as visit:
        page = visit.page
        visit.open("operator")
        expect(page.locator("[data-testid=authority]")).to_have_attribute("data-may", "false")
        expect(page.locator("[data-do=shed]")).to_have_count(0)
        visit.use_key(KEY)
        page.click("[data-do=shed]")
        page.click("[data-testid=yes]")
        # Nothing is done without a reason.
        expect(page.locator("dialog [role=alert]")).to_contain_text("Reason")
        page.fill("#dialog-reason", "the database moves")
        expect(page.locator("dialog [role=alert]")).to_be_hidden()
        visit.picture("9-confirm")
        page.click("[data-testid=yes]")
        door = page.locator("[data-testid=door]")
        expect(door).to_have_attribute("data-state", "closed")
        visit.picture("10-door-closed")
        visit.turn_to("")
        visit.page.fill("#question", "hello")
        page.click("[data-testid=submit]")
        expect(page.locator("[data-testid=problem]")).to_contain_text("LOAD_SHED")
        visit.picture("11-refused")
        visit.turn_to("operator")
        page.click("[data-do=end]")
        page.click("[data-testid=no]")
        expect(door).to_have_attribute("data-state", "closed")
        page.click("[data-do=end]")
        page.click("[data-testid=yes]")
        expect(door).to_have_attribute("data-state", "open")
        _hold_and_reset(visit)

    # The refusals are what it was about; a browser reports each.
    assert [text for text in visit.complaints if "503" not in text] == []
    told = [line for line in house.suite.child(GATEWAY).events() if line["event"] == "order_taken"]
    held = [line for line in house.suite.child(DOMAIN).events() if line["event"] == "order_taken"]
    assert [line["order"] for line in told] == ["shed", "end"]
    assert [line["order"] for line in held] == ["breaker_open", "breaker_reset"]
    assert KEY not in house.suite.child(GATEWAY).log.read_text()


def _hold_and_reset(visit: Visit) -> None:
    """Hold a breaker of another hop open, and reset it."""
    page = visit.page
    visit.turn_to("dependencies")
    line = page.locator(f"tr[data-caller={DOMAIN}][data-dependency='tool']")
    line.locator("[data-order=open]").click()
    page.fill("#dialog-reason", "it is being repaired")
    page.click("[data-testid=yes]")
    expect(line).to_have_attribute("data-breaker", "open")
    expect(line.locator(".badge.forced")).to_be_visible()
    visit.picture("12-breaker-held")
    line.locator("[data-order=reset]").click()
    page.click("[data-testid=yes]")
    expect(line).to_have_attribute("data-breaker", "closed")


@requirement("page:keyboard")
def test_everything_can_be_done_with_the_keyboard_alone(visit: Visit) -> None:
    page = visit.page
    visit.open()
    press = page.keyboard.press
    press("Tab")
    assert visit.focused() == "skip"
    visit.picture("13-skip-link")
    press("Enter")
    press("Tab")
    assert visit.focused() == "question"
    page.keyboard.type("What can you do?")
    press("Control+Enter")
    visit.ended("ok", "degraded")
    # To the runs by the bar, and into the newest of them.
    page.keyboard.press("Shift+Tab")
    page.locator("nav a[data-view=runs]").focus()
    ring = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    press("Enter")
    page.wait_for_selector("[data-testid=runs] tbody tr")
    assert visit.focused() == "main"
    for _ in range(12):
        press("Tab")
        if page.evaluate("document.activeElement.closest('[data-testid=runs]') !== null"):
            break
    press("Enter")
    page.wait_for_selector("[data-testid=events] li")

    assert ring == "solid"
    assert page.evaluate("location.hash").startswith("#/runs/")


@requirement("page:narrow")
def test_it_fits_the_screen_of_a_phone(house: House, browser: Browser) -> None:
    with visiting(browser, house.suite.url, key=house.acme, width=390, height=844) as visit:
        page = visit.page
        visit.open()
        visit.ask(REPORT)
        visit.ended("ok", "degraded")
        visit.picture("16-phone")
        widths = []
        for view in ("", "dependencies", "runs", "operator"):
            visit.turn_to(view)
            page.wait_for_selector("main .card")
            widths.append(page.evaluate("document.documentElement.scrollWidth"))

    assert widths == [390] * 4


@requirement("page:key")
def test_who_is_asked_for_a_key_gives_it_once_and_it_is_kept_in_the_tab_alone(
    house: House, browser: Browser
) -> None:
    with visiting(browser, house.suite.url) as visit:
        page = visit.page
        page.goto("/")
        page.fill("#dialog-key", house.acme)
        visit.picture("17-key")
        page.click("[data-testid=yes]")
        page.wait_for_selector("#line[data-state=open]")
        page.wait_for_selector("#agent option[value=chat]", state="attached")
        page.reload()
        page.wait_for_selector("#agent option[value=chat]", state="attached")
        kept = page.evaluate("Object.values(sessionStorage)")
        elsewhere = page.evaluate("JSON.stringify(localStorage) + document.cookie")

    assert kept == [house.acme]
    assert house.acme not in elsewhere
    # It is what the test is about; a browser reports each.
    assert [text for text in visit.complaints if "401" not in text] == []


@requirement("page:runs")
def test_an_operator_sees_the_runs_of_the_tenant_that_they_name(
    house: House, browser: Browser
) -> None:
    with visiting(browser, house.suite.url, key=house.globex) as theirs:
        theirs.open()
        run = theirs.start("What can you do?", "chat")
    with visiting(browser, house.suite.url, key=house.acme) as visit:
        page = visit.page
        visit.open("runs")
        expect(page.locator(f"tr[data-key='{run}']")).to_have_count(0)
        visit.use_key(KEY)
        visit.turn_to("runs")
        page.fill("input[name=tenant]", "globex")
        page.keyboard.press("Enter")
        page.click(f"tr[data-key='{run}'] a")
        expect(page.locator("[data-testid=events]")).to_contain_text("accepted")
        visit.ended("ok")

    assert visit.complaints == []


@requirement("page:safe")
def test_what_others_write_is_text_and_never_markup(visit: Visit) -> None:
    page = visit.page
    visit.open()
    attack = "<img src=x onerror=document.title=1>.csv"
    content = b"city,sales\nOslo,3\nRome,5\n"
    page.set_input_files("#files", [FilePayload(name=attack, mimeType="text/csv", buffer=content)])
    expect(page.locator(".chosen")).to_contain_text(attack)
    # A tool that is not there is named in the error, in the step and in the breaker's key.
    visit.ask(f"{attack.replace(' ', '/')} {{}}", "probe_tool")
    visit.ended("failed")
    expect(page.locator("[data-testid=problem]")).to_contain_text("<img/src=x")
    visit.picture("14-markup-is-text")
    visit.turn_to("dependencies")
    expect(page.locator("[data-testid=dependencies]")).to_contain_text("<img/src=x")

    assert page.locator("img[src=x], main script").count() == 0
    assert page.title() == "Dependencies · sixhop"
    # Nor does it go anywhere but to its own door.
    loaded = page.evaluate("performance.getEntriesByType('resource').map((it) => it.name)")
    assert loaded
    assert all(name.startswith(page.evaluate("location.origin")) for name in loaded)

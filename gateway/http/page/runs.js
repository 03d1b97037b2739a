// Lists recent runs, and shows one of them with all that it told.

import * as api from "./api.js";
import { act, h, once, show } from "./dom.js";
import { follow } from "./follow.js";
import { mayOrder } from "./operator.js";
import { badge, panel, problem } from "./run.js";
import { newTravel, takeRecord } from "./travel.js";
import { clock, count, length, t, term } from "./words.js";

const REFRESH_MS = 3000;
const STATUSES = ["running", "ok", "degraded", "failed", "cancelled"];
const wanted = { status: "", agent: "", tenant: "" };

/** Show the list; return what ends it. */
export function mountList(root) {
  const filters = h("form", { class: "filters", "aria-label": t("runs.filter") });
  const list = h("div", { class: "scroll" });
  root.append(h("section", { class: "card", "aria-label": t("runs") }, filters, list));
  const known = { runs: [], next: null, error: null, tenants: new Set(), agents: new Set() };
  const draw = once(() => {
    drawFilters(filters, known);
    drawList(list, known);
  });
  let shown = true;
  async function load(before = "") {
    const query = new URLSearchParams({ limit: "50" });
    for (const [name, value] of Object.entries(wanted)) if (value) query.set(name, value);
    if (before) query.set("before", before);
    try {
      const page = await api.get(`/v1/runs?${query}`, api.operatorHeaders());
      if (!shown) return;
      known.runs = before ? [...known.runs, ...page.data] : page.data;
      known.next = page.next;
      known.error = null;
      for (const run of page.data) {
        known.tenants.add(run.tenant);
        if (run.agent) known.agents.add(run.agent);
      }
    } catch (error) {
      known.error = error.told ?? { message: String(error) };
    }
    if (shown) draw();
  }
  filters.addEventListener("submit", (event) => event.preventDefault());
  filters.addEventListener("change", () => {
    for (const name of Object.keys(wanted)) {
      if (filters.elements[name]) wanted[name] = filters.elements[name].value;
    }
    load();
  });
  act(root, { more: () => load(known.next) });
  drawFilters(filters, known);
  drawList(list, known);
  load();
  // Whoever has turned pages does not want them to jump.
  const again = setInterval(() => known.runs.length <= 50 && load(), REFRESH_MS);
  return () => {
    shown = false;
    clearInterval(again);
  };
}

function drawFilters(filters, known) {
  const tenants = [...known.tenants].filter(Boolean).sort();
  show(
    filters,
    h("h1", {}, t("runs")),
    h("span", { class: "grow" }),
    choice("status", STATUSES, (each) => term("status", each)),
    choice("agent", [...known.agents].sort(), (each) => term("agent", each)),
    mayOrder()
      ? h(
          "label",
          { class: "inline" },
          t("tenant"),
          h("input", { name: "tenant", value: wanted.tenant, size: "12", placeholder: t("tenant.own") }),
        )
      : choice("tenant", tenants, (each) => each),
  );
}

function choice(name, values, text) {
  const all = wanted[name] && !values.includes(wanted[name]) ? [...values, wanted[name]] : values;
  return h(
    "label",
    { class: "inline" },
    t(name),
    h(
      "select",
      { name },
      h("option", { value: "", selected: !wanted[name] }, t("all")),
      all.map((each) =>
        h("option", { value: each, selected: wanted[name] === each }, text(each)),
      ),
    ),
  );
}

function drawList(list, known) {
  if (known.error) {
    show(list, problem(known.error));
    return;
  }
  if (!known.runs.length) {
    show(list, h("p", { class: "empty muted" }, t("runs.none")));
    return;
  }
  show(
    list,
    h(
      "table",
      { class: "list", "data-testid": "runs" },
      h("caption", { class: "hidden" }, t("runs")),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["started", "status", "run", "agent", "tenant", "question"].map((key) =>
            h("th", { scope: "col" }, t(key)),
          ),
          ["took", "given"].map((key) => h("th", { scope: "col", class: "number" }, t(key))),
          h("th", { scope: "col" }, t("outcome")),
        ),
      ),
      h("tbody", {}, known.runs.map(line)),
    ),
    known.next
      ? h("button", { type: "button", class: "more", "data-do": "more" }, t("runs.more"))
      : null,
  );
}

function line(run) {
  const question = run.question ?? {};
  return h(
    "tr",
    { "data-key": run.id, "data-status": run.status, "data-agent": run.agent },
    h("td", { class: "mono small" }, clock(run.started_at)),
    h("td", {}, badge(run.status)),
    h(
      "td",
      { class: "mono small" },
      h("a", { href: runLink(run) }, run.id.slice(0, 12)),
    ),
    h("td", {}, run.agent ? term("agent", run.agent) : "–"),
    h("td", {}, run.tenant || "–"),
    h(
      "td",
      { class: "question" },
      question.text ?? h("span", { class: "muted" }, withheld(question.char_count)),
    ),
    h("td", { class: "number" }, length(run.elapsed_ms)),
    h("td", { class: "number muted" }, length(run.budget_ms)),
    h("td", { class: "small" }, outcome(run)),
  );
}

/** An operator who looks at the runs of a tenant has to say whose the run is. */
function runLink(run) {
  const whose = mayOrder() && wanted.tenant ? `/${encodeURIComponent(wanted.tenant)}` : "";
  return `#/runs/${encodeURIComponent(run.id)}${whose}`;
}

function withheld(length) {
  return length ? t("question.withheld", { count: count(length) }) : "–";
}

function outcome(run) {
  if (run.error) return [h("b", { class: "bad" }, run.error.reason), ` ${run.error.hop}`];
  const mechanisms = [...new Set((run.degraded ?? []).map((each) => each.mechanism))];
  if (mechanisms.length) return mechanisms.join(", ");
  return run.artifacts?.length ? t("files.count", { count: run.artifacts.length }) : "";
}

/** Show one run; return what ends it. */
export function mountRun(root, id, tenant = null) {
  const card = h("section", { class: "card run", "aria-label": t("run") });
  const log = h("section", { class: "card", "aria-label": t("events") });
  root.append(h("p", { class: "back" }, h("a", { href: "#/runs" }, t("runs.back"))), card, log);
  const travel = newTravel(id, null, tenant);
  const stop = new AbortController();
  const draw = once(() => {
    show(card, panel(travel, draw, { withLink: false }), about(travel.record));
    show(log, h("h2", {}, t("events")), eventList(travel));
  });
  act(card, {
    cancel: () => api.remove(`/v1/runs/${encodeURIComponent(id)}`).catch(() => {}),
  });
  (async () => {
    try {
      takeRecord(travel, await api.get(...api.runPlace(id, "", tenant)));
    } catch (error) {
      show(card, problem(error.told ?? { message: String(error) }));
      return;
    }
    draw();
    await follow(travel, draw, stop.signal);
    draw();
  })();
  const ticking = setInterval(() => travel.record && !travel.over && draw(), 250);
  return () => {
    clearInterval(ticking);
    stop.abort();
  };
}

function about(record) {
  if (!record) return null;
  const facts = [
    ["started", `${new Date(record.started_at).toLocaleString([], { hour12: false })}`],
    ["request", record.request_id],
    ["tenant", record.tenant],
    ["gateway", record.gateway],
    ["question", record.question?.text],
  ].filter(([, value]) => value);
  return h(
    "dl",
    { class: "facts wide" },
    facts.map(([name, value]) => [h("dt", {}, t(name)), h("dd", { class: "mono" }, value)]),
  );
}

function eventList(travel) {
  if (!travel.log.length) return h("p", { class: "muted" }, t("events.none"));
  return h(
    "ol",
    { class: "events", "data-testid": "events" },
    travel.log.map(({ kind, data }) =>
      h(
        "li",
        { class: kind },
        h("span", { class: "mono muted small" }, length(data.at_ms)),
        h("b", { class: "mono small" }, kind),
        h("span", { class: "detail" }, detail(kind, data)),
      ),
    ),
  );
}

function detail(kind, data) {
  if (kind === "text_delta") return data.text;
  const told = Object.entries(data)
    .filter(([name]) => !["sequence", "at_ms", "kind"].includes(name))
    .filter(([, value]) => value !== "" && value !== null && !(Array.isArray(value) && !value.length))
    .map(([name, value]) => {
      const text = typeof value === "object" ? JSON.stringify(value) : String(value);
      return `${name} ${text}`;
    });
  return told.join(" · ");
}

// Shows the chain of hops on every page, and all dependencies with their breakers and limits.

import { act, announce, h, once, show } from "./dom.js";
import { mayOrder, orderBreaker } from "./operator.js";
import { changes, history, hops, line, onState } from "./state.js";
import { CHAIN } from "./travel.js";
import { clock, count, length, percent, size, t, term } from "./words.js";

/** Draw the chain of hops into a place, and again whenever it changes. */
export function drawChain(root) {
  const draw = once(() => show(root, chain()));
  draw();
  onState((change) => {
    draw();
    if (change) announce(said(change));
  });
  return draw;
}

function chain() {
  return h(
    "ol",
    { class: `chain${line.open ? "" : " stale"}`, "aria-label": t("chain") },
    CHAIN.map((name) => {
      const found = [...hops.values()].filter((each) => each.hop === name);
      return name === "llm" ? provider() : node(name, found);
    }),
  );
}

function node(name, found) {
  const state = worst(found.map((each) => each.state));
  const open = found.flatMap((each) => each.dependencies).filter((each) => each.breaker !== "closed");
  const first = found[0];
  const inflight = found.reduce((sum, each) => sum + each.inflight, 0);
  return h(
    "li",
    { class: `node ${state}${open.length ? " sick" : ""}`, "data-hop": name, "data-state": state },
    h(
      "span",
      { class: "node-name" },
      h("span", { class: "dot", "aria-hidden": "true" }),
      term("hop", name),
      found.length > 1 ? h("span", { class: "muted" }, ` ×${found.length}`) : null,
    ),
    h(
      "span",
      { class: "node-facts" },
      state === "serving"
        ? [
            h("span", { title: t("median") }, length(first?.latency_ms?.p50 ?? null)),
            h("span", { title: t("in_flight") }, t("in_flight.short", { count: inflight })),
          ]
        : term("state", state),
    ),
  );
}

function provider() {
  const model = [...hops.values()].find((each) => each.hop === "model");
  const seen = model?.dependencies.find((each) => each.key.startsWith("llm"));
  const state = !model || model.state !== "serving" ? "unknown" : "serving";
  const name = model?.attributes.model ?? model?.attributes.provider ?? "";
  return h(
    "li",
    {
      class: `node outside ${seen && seen.breaker !== "closed" ? "sick" : state}`,
      "data-hop": "llm",
    },
    h("span", { class: "node-name" }, h("span", { class: "dot" }), term("hop", "llm")),
    h("span", { class: "node-facts" }, h("span", { class: "clip" }, name || "–")),
  );
}

function worst(states) {
  const order = ["unreachable", "silent", "not_serving", "unknown", "serving"];
  return order.find((state) => states.includes(state)) ?? "unknown";
}

/** Return a change in words. */
export function said(change) {
  if (change.kind === "breaker") {
    return t("change.breaker", {
      hop: term("hop", change.hop),
      key: change.key,
      state: term("breaker", change.to),
    });
  }
  if (change.kind === "door") return t("change.door", { state: term("door", change.to) });
  return t("change.hop", { hop: term("hop", change.hop), state: term("state", change.to) });
}

/** Show the view; return what ends it. */
export function mount(root) {
  const table = h("section", { class: "card", "aria-label": t("dependencies") });
  const processes = h("section", { class: "card", "aria-label": t("hops") });
  const limits = h("section", { class: "card", "aria-label": t("limits") });
  const recent = h("section", { class: "card", "aria-label": t("changes") });
  root.append(table, h("div", { class: "columns wide-first" }, limits, recent), processes);
  const draw = once(() => {
    show(table, h("h1", {}, t("dependencies")), dependencies());
    show(processes, h("h2", {}, t("hops")), processTable());
    show(limits, h("h2", {}, t("limits")), limitTable());
    show(recent, h("h2", {}, t("changes")), changeList());
  });
  act(table, {
    order: (target) => orderBreaker(target.dataset.hop, target.dataset.key2, target.dataset.order),
  });
  draw();
  const end = onState(draw);
  const again = setInterval(draw, 1000);
  return () => {
    end();
    clearInterval(again);
  };
}

function head(words, numbers, last = []) {
  return h(
    "thead",
    {},
    h(
      "tr",
      {},
      words.map((key) => h("th", { scope: "col" }, t(key))),
      numbers.map((key) => h("th", { scope: "col", class: "number" }, t(key))),
      last.map((key) => h("th", { scope: "col" }, t(key))),
    ),
  );
}

function dependencies() {
  const found = [...hops.values()].flatMap((hop) => hop.dependencies.map((each) => [hop, each]));
  if (!found.length) return h("p", { class: "empty muted" }, t("dependencies.none"));
  const may = mayOrder();
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "list", "data-testid": "dependencies" },
      h("caption", { class: "hidden" }, t("dependencies")),
      head(
        ["caller", "dependency", "breaker"],
        ["calls", "failed", "mean", "expected", "timeout", "slow_now", "retries"],
        ["recent_latency", ...(may ? ["order"] : [])],
      ),
      h("tbody", {}, found.map(([hop, each]) => dependency(hop, each, may))),
    ),
  );
}

function dependency(hop, each, may) {
  const fallbacks = Object.values(each.fallbacks).reduce((sum, one) => sum + one, 0);
  return h(
    "tr",
    {
      "data-key": `${hop.hop}@${hop.address} ${each.key}`,
      "data-breaker": each.breaker,
      "data-dependency": each.key,
      "data-caller": hop.hop,
    },
    h("td", {}, term("hop", hop.hop), hop.replica ? h("span", { class: "muted small" }, ` ${hop.address}`) : null),
    h("td", { class: "mono" }, each.key),
    h("td", {}, breaker(each)),
    h("td", { class: "number" }, count(each.calls)),
    h("td", { class: `number${each.failure_ratio > 0 ? " bad" : ""}` }, each.calls ? percent(each.failure_ratio) : "–"),
    h("td", { class: "number" }, length(each.mean_ms)),
    h("td", { class: "number muted" }, length(each.expected_ms)),
    h("td", { class: "number muted" }, length(each.timeout_ms)),
    h("td", { class: `number${each.slow + each.overdue ? " warn" : ""}` }, `${each.slow}${each.overdue ? ` +${each.overdue}` : ""}`),
    h("td", { class: "number" }, count(each.retries), fallbacks ? h("span", { class: "muted" }, ` ◆${count(fallbacks)}`) : null),
    h("td", {}, spark(history(hop.hop, each.key), each.timeout_ms)),
    may ? h("td", { class: "orders" }, orders(hop, each)) : null,
  );
}

function breaker(each) {
  const why = each.breaker === "closed" && !each.forced ? "" : term("reason", each.reason);
  const until = each.probe_ms === null ? "" : t("probe_in", { length: length(each.probe_ms) });
  return h(
    "span",
    { class: "breaker" },
    h("span", { class: `badge breaker-${each.breaker}` }, term("breaker", each.breaker)),
    each.forced ? h("span", { class: "badge forced" }, t("forced")) : null,
    why || until
      ? h("span", { class: "small muted" }, [why, until].filter(Boolean).join(" · "))
      : null,
  );
}

function orders(hop, each) {
  const button = (order) =>
    h(
      "button",
      {
        type: "button",
        class: "small quiet",
        "data-do": "order",
        "data-order": order,
        "data-hop": hop.hop,
        "data-key2": each.key,
        "aria-label": t(`order.${order}.of`, { key: each.key, hop: term("hop", hop.hop) }),
      },
      t(`order.${order}`),
    );
  return [button("open"), button("close"), button("reset")];
}

function spark(values, limit) {
  const width = 96;
  const height = 18;
  const known = values.filter((value) => value !== null);
  const most = Math.max(...known, 0);
  const step = width / Math.max(1, values.length - 1);
  const points = values
    .map((value, number) => [number * step, value])
    .filter(([, value]) => value !== null)
    .map(([x, value]) => `${x.toFixed(1)},${(height - 2 - ((height - 5) * value) / most).toFixed(1)}`);
  return h(
    "svg",
    {
      class: limit && most > limit * 0.6 ? "spark warn" : "spark",
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": t("spark", { most: length(known.length ? most : null) }),
    },
    points.length > 1 ? h("polyline", { points: points.join(" ") }) : null,
  );
}

const GROUPS = ["core", "data", "auxiliary", "external", "backup"];

function limitTable() {
  const found = [...hops.values()].filter((hop) => hop.admission);
  if (!found.length) return h("p", { class: "empty muted" }, t("limits.none"));
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "list limits", "data-testid": "limits" },
      h("caption", { class: "hidden" }, t("limits")),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, t("hop")),
          h("th", { scope: "col" }, t("admission")),
          GROUPS.map((each) => h("th", { scope: "col" }, term("group", each))),
        ),
      ),
      h(
        "tbody",
        {},
        found.map((hop) => {
          const { limit, inflight, waiting, rejected } = hop.admission;
          return h(
            "tr",
            { "data-key": `${hop.hop}@${hop.address}` },
            h("th", { scope: "row" }, term("hop", hop.hop)),
            h("td", {}, gauge(limit, inflight, waiting, rejected)),
            GROUPS.map((name) => {
              const each = hop.bulkheads.find((one) => one.group === name);
              return h(
                "td",
                {},
                each ? gauge(each.permits, each.inflight, each.queued, each.rejected) : "–",
              );
            }),
          );
        }),
      ),
    ),
  );
}

function gauge(limit, inflight, queued, rejected) {
  const part = Math.min(1, limit ? inflight / limit : 0);
  return h(
    "span",
    { class: "limit" },
    h(
      "span",
      {},
      h("span", { class: inflight ? "strong" : "muted" }, `${count(inflight)} / ${count(limit)}`),
      queued ? h("span", { class: "warn" }, ` ${t("queued.short", { count: count(queued) })}`) : null,
      rejected
        ? h("span", { class: "bad" }, ` ${t("rejected.short", { count: count(rejected) })}`)
        : null,
    ),
    h("span", { class: "gauge", style: { "--part": part.toFixed(3) } }),
  );
}

function changeList() {
  if (!changes.length) return h("p", { class: "empty muted" }, t("changes.none"));
  return h(
    "ol",
    { class: "changes", "data-testid": "changes" },
    changes.map((each) =>
      h(
        "li",
        {},
        h("span", { class: "mono muted small" }, clock(each.at)),
        h("span", {}, said(each)),
        each.why ? h("span", { class: "muted" }, term("reason", each.why)) : null,
      ),
    ),
  );
}

function processTable() {
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "list", "data-testid": "hops" },
      h("caption", { class: "hidden" }, t("hops")),
      head(
        ["hop", "state", "address"],
        ["in_flight", "queued", "calls", "errors", "p50", "p90", "p99", "waiting", "takes", "lag", "memory"],
      ),
      h("tbody", {}, [...hops.values()].map(processLine)),
    ),
  );
}

function processLine(hop) {
  const latency = hop.latency_ms ?? {};
  return h(
    "tr",
    { "data-key": `${hop.hop}@${hop.address}`, "data-state": hop.state },
    h("td", {}, h("b", {}, term("hop", hop.hop))),
    h(
      "td",
      {},
      h("span", { class: `badge state-${hop.state}` }, term("state", hop.state)),
      hop.detail ? h("span", { class: "small muted" }, ` ${hop.detail}`) : null,
    ),
    h("td", { class: "mono small muted" }, hop.address),
    h("td", { class: "number" }, count(hop.inflight)),
    h("td", { class: "number" }, count(hop.queued)),
    h("td", { class: "number" }, count(hop.calls)),
    h("td", { class: `number${hop.errors ? " bad" : ""}` }, count(hop.errors)),
    h("td", { class: "number" }, length(latency.p50)),
    h("td", { class: "number" }, length(latency.p90)),
    h("td", { class: "number" }, length(latency.p99)),
    h("td", { class: "number muted" }, length(latency.avg_wait)),
    h("td", { class: "number" }, hop.estimated_qps === null ? "–" : `+${count(Math.round(hop.estimated_qps))}/s`),
    h("td", { class: "number muted" }, length(hop.loop_lag_ms)),
    h("td", { class: "number muted" }, size(hop.memory_bytes)),
  );
}

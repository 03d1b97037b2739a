// Draws where a run is and was: a row for each hop, over time.

import { h } from "./dom.js";
import { elapsed, rows } from "./travel.js";
import { length, t, term } from "./words.js";

const MIN_AXIS_MS = 200;
const TICKS = 4;
/** What stands for what happened, as paths in a square of 16. */
const SIGNS = {
  degraded: "M8 3 13 8 8 13 3 8Z",
  skipped: "M8 3.2a4.8 4.8 0 1 0 0 9.6 4.8 4.8 0 0 0 0-9.6M4.7 11.3 11.3 4.7",
  failed: "M4.2 4.2 11.8 11.8M11.8 4.2 4.2 11.8",
  restarted: "M12.4 6.2A4.9 4.9 0 1 0 12.8 9M12.9 2.9V6.4H9.4",
};

/** Return the waterfall of a run as a table. */
export function waterfall(travel) {
  const found = rows(travel);
  const axis = Math.max(MIN_AXIS_MS, elapsed(travel), ...found.map((row) => row.end ?? 0));
  return h(
    "table",
    { class: "waterfall", "data-testid": "waterfall" },
    h("caption", { class: "hidden" }, t("waterfall.caption")),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, t("hop")),
        h("th", { scope: "col", class: "track-head" }, ticks(axis)),
        h("th", { scope: "col", class: "number" }, t("given")),
        h("th", { scope: "col", class: "number" }, t("used")),
        h("th", { scope: "col", class: "number" }, t("left")),
      ),
    ),
    h("tbody", {}, found.map((row) => line(row, axis, travel))),
  );
}

/** Return the signs of the waterfall with what they mean. */
export function legend() {
  return h(
    "p",
    { class: "legend" },
    h("span", {}, h("span", { class: "swatch work" }), t("legend.work")),
    h("span", {}, h("span", { class: "swatch" }), t("legend.wait")),
    Object.keys(SIGNS).map((kind) => h("span", {}, sign(kind), t(`mark.${kind}`))),
  );
}

/** Return what stands for a kind of mark. */
export function sign(kind) {
  return h("span", { class: `sign ${kind}`, "aria-hidden": "true" }, drawn(kind));
}

function drawn(kind) {
  return h("svg", { viewBox: "0 0 16 16" }, h("path", { d: SIGNS[kind] }));
}

function ticks(axis) {
  const found = [];
  for (let number = 0; number <= TICKS; number += 1) {
    const place = `${(100 * number) / TICKS}%`;
    found.push(h("span", { class: "tick", style: { left: place } }, length((axis * number) / TICKS)));
  }
  return h("div", { class: "axis", "aria-hidden": "true" }, found);
}

function line(row, axis, travel) {
  if (row.start === null) {
    const text = travel.over ? t("row.not_called") : t("row.not_yet");
    return h(
      "tr",
      { class: "idle", "data-key": row.key, "data-hop": row.hop },
      h("th", { scope: "row" }, name(row)),
      h("td", { class: "track", colspan: "4" }, h("span", { class: "muted small" }, text)),
    );
  }
  const end = row.end ?? elapsed(travel);
  const used = row.used ?? end - row.start;
  return h(
    "tr",
    { class: row.state, "data-key": row.key, "data-hop": row.hop },
    h("th", { scope: "row" }, name(row)),
    h("td", { class: "track" }, track(row, end, axis)),
    h("td", { class: "number" }, length(row.given)),
    h("td", { class: "number strong" }, length(used)),
    h("td", { class: "number" }, length(row.left)),
  );
}

function name(row) {
  const indent = row.depth === null ? 0 : Math.min(row.depth, 5);
  return h(
    "span",
    { class: "row-name", style: { "--depth": String(indent) } },
    h("span", { class: "row-hop" }, term("hop", row.hop)),
    row.label ? h("span", { class: "row-label", title: row.label }, shortened(row.label)) : null,
  );
}

/** What was called says more than by which method, where both are told. */
function shortened(label) {
  return label.replace(/^(ExecuteTool|RunAgent) (?=[^#])/, "");
}

function track(row, end, axis) {
  const at = (ms) => `${Math.min(100, Math.max(0, (100 * ms) / axis)).toFixed(3)}%`;
  const wide = (from, to) => `${Math.max(0.35, (100 * (to - from)) / axis).toFixed(3)}%`;
  const after = row.reason || thinking(row);
  const atEnd = end / axis > 0.7;
  const crowded = row.marks.some((each) => Math.abs(each.at - end) < axis * 0.03);
  return h(
    "div",
    { class: "lane" },
    h("span", { class: "bar", style: { left: at(row.start), width: wide(row.start, end) } }),
    (row.work ?? []).map(([from, to]) =>
      h("span", { class: "bar work", style: { left: at(from), width: wide(from, to) } }),
    ),
    row.marks.map((each, number) =>
      h(
        "span",
        {
          class: `sign on-track ${each.kind}`,
          style: { left: at(each.at), "--nudge": String(crowd(row.marks, number, axis)) },
          title: [t(`mark.${each.kind}`), each.what, each.why].filter(Boolean).join(": "),
          role: "img",
          "aria-label": `${t(`mark.${each.kind}`)} ${each.what}`,
        },
        drawn(each.kind),
      ),
    ),
    after
      ? h(
          "span",
          { class: `after ${atEnd ? "inside" : crowded ? "apart" : ""}`, style: { left: at(end) } },
          after,
        )
      : null,
  );
}

/** Return how many marks in a row before this one stand where it would stand. */
function crowd(marks, number, axis) {
  let found = 0;
  while (found < number && marks[number].at - marks[number - found - 1].at < axis * 0.03) found += 1;
  return found;
}

function thinking(row) {
  if (!row.thinking) return "";
  const { state, silence_ms: silence } = row.thinking;
  return `${term("thinking", state)} ${length(silence)}`;
}

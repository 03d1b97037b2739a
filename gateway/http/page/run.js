// Shows one run: where it is, what it says, what came of it.

import * as api from "./api.js";
import { h } from "./dom.js";
import { elapsed } from "./travel.js";
import { legend, sign, waterfall } from "./waterfall.js";
import { count, length, size, t, term } from "./words.js";

const SHOWN_IMAGES = new Set(["image/png", "image/jpeg"]);
const PDF = "application/pdf";
const files = new Map();

/** Return the whole panel of a run; `redraw` is called when a file of it has come. */
export function panel(travel, redraw, { withLink = true } = {}) {
  return [
    head(travel, withLink),
    budget(travel),
    travel.error ? problem(travel.error) : null,
    waterfall(travel),
    legend(),
    happened(travel),
    answer(travel),
    artifacts(travel, redraw),
    sources(travel),
  ];
}

/** Return what an error tells: the reason, the hop, what was left, and what to do. */
export function problem(error) {
  const facts = [
    ["reason", error.reason],
    ["hop", error.hop && term("hop", error.hop)],
    ["cause", error.cause && error.cause !== String(error.reason).toLowerCase() && error.cause],
    ["left", typeof error.remaining_ms === "number" && length(error.remaining_ms)],
  ].filter(([, value]) => value);
  return h(
    "div",
    { class: "notice bad", role: "alert", "data-testid": "problem" },
    h("p", { class: "strong" }, error.message || t("error.unreachable")),
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, value]) => [h("dt", {}, t(name)), h("dd", {}, value)]),
    ),
  );
}

/** Return how a run stands, as a badge. */
export function badge(status) {
  return h("span", { class: `badge ${status}`, "data-status": status }, term("status", status));
}

function head(travel, withLink) {
  const id = travel.id.slice(0, 12);
  return h(
    "header",
    { class: "run-head" },
    badge(travel.status),
    h("h2", { class: "run-title" }, travel.agent ? term("agent", travel.agent) : t("run")),
    h(
      "span",
      { class: "mono muted small" },
      withLink ? h("a", { href: `#/runs/${encodeURIComponent(travel.id)}` }, id) : travel.id,
    ),
    h("span", { class: "grow" }),
    travel.model ? h("span", { class: "pair" }, t("written_by"), h("b", {}, writer(travel))) : null,
    travel.usage
      ? h(
          "span",
          { class: "pair" },
          t("tokens"),
          h(
            "b",
            {},
            `${count(travel.usage.input_token_count)} → ${count(travel.usage.output_token_count)}`,
          ),
        )
      : null,
    travel.over
      ? null
      : h("button", { type: "button", class: "small", "data-do": "cancel" }, t("cancel")),
  );
}

function writer(travel) {
  return travel.model === "template" ? t("template") : travel.model;
}

function budget(travel) {
  const spent = elapsed(travel);
  const whole = travel.budgetMs;
  if (!whole) return null;
  const part = Math.min(1, spent / whole);
  return h(
    "div",
    { class: "budget" },
    h(
      "div",
      {
        class: "meter",
        role: "meter",
        "aria-label": t("deadline"),
        "aria-valuemin": "0",
        "aria-valuemax": String(whole),
        "aria-valuenow": String(Math.round(Math.min(spent, whole))),
      },
      h("span", {
        class: part > 0.85 ? "fill bad" : part > 0.6 ? "fill warn" : "fill",
        style: { width: `${(100 * part).toFixed(2)}%` },
      }),
    ),
    h("span", { class: "small muted" }, t("spent_of", { spent: length(spent), whole: length(whole) })),
  );
}

function happened(travel) {
  if (!travel.marks.length && !travel.missing.length && !travel.gap) return null;
  return h(
    "ul",
    { class: "happened", "aria-label": t("happened"), "data-testid": "happened" },
    travel.marks.map((each) =>
      h(
        "li",
        {},
        sign(each.kind),
        h("span", { class: "mono muted small" }, length(each.at)),
        h("b", {}, t(`mark.${each.kind}`)),
        each.what ? h("span", {}, each.what) : null,
        each.why ? h("span", { class: "muted" }, each.why) : null,
      ),
    ),
    travel.missing.length
      ? h(
          "li",
          {},
          sign("skipped"),
          h("b", {}, t("missing")),
          h("span", {}, travel.missing.join(", ")),
        )
      : null,
    travel.gap ? h("li", {}, sign("skipped"), h("b", {}, t("gap"))) : null,
  );
}

function answer(travel) {
  const text = travel.whole ?? travel.text;
  if (!text && travel.over) return null;
  const waiting = !travel.over;
  return h(
    "section",
    { class: "answer", "aria-label": t("answer"), "aria-busy": String(waiting) },
    h(
      "div",
      { class: `prose${waiting ? " writing" : ""}`, "data-testid": "answer" },
      text || h("span", { class: "muted" }, t("answer.waiting")),
    ),
  );
}

function artifacts(travel, redraw) {
  if (!travel.artifacts.length) return null;
  return h(
    "section",
    { class: "artifacts", "aria-label": t("files"), "data-testid": "artifacts" },
    travel.artifacts.map((each) => artifact(travel, each, redraw)),
  );
}

function artifact(travel, each, redraw) {
  const facts = h("span", { class: "muted small" }, `${each.media_type} · ${size(each.byte_count)}`);
  if (!each.url) {
    return h("figure", {}, h("figcaption", {}, h("b", {}, each.name), facts, t("file.not_kept")));
  }
  const address = fetched(travel, each, redraw);
  if (!address) {
    return h("figure", {}, h("figcaption", {}, h("b", {}, each.name), facts));
  }
  const isImage = SHOWN_IMAGES.has(each.media_type);
  const isPdf = each.media_type === PDF;
  return h(
    "figure",
    { class: isImage ? "image" : "document" },
    isImage ? h("img", { src: address, alt: t("file.chart", { name: each.name }) }) : null,
    h(
      "figcaption",
      {},
      h("b", {}, each.name),
      facts,
      isPdf
        ? h(
            "a",
            { class: "button small", href: address, target: "_blank", rel: "noopener" },
            t("file.open"),
          )
        : null,
      h("a", { class: "button small", href: address, download: each.name }, t("file.save")),
    ),
  );
}

/** Return the address of a file here; it is fetched once, with the key, when it is first wanted. */
function fetched(travel, each, redraw) {
  const known = files.get(each.url);
  if (known !== undefined) return known;
  files.set(each.url, "");
  const part = `/artifacts/${encodeURIComponent(each.name)}`;
  api
    .file(...api.runPlace(travel.id, part, travel.tenant))
    .then((blob) => {
      // Only what cannot run is shown by its type; all else is bytes to save.
      const harmless = SHOWN_IMAGES.has(each.media_type) || each.media_type === PDF;
      const type = harmless ? each.media_type : "application/octet-stream";
      files.set(each.url, URL.createObjectURL(new Blob([blob], { type })));
      redraw();
    })
    .catch(() => files.delete(each.url));
  return "";
}

function sources(travel) {
  if (!travel.sources.length) return null;
  return h(
    "details",
    { class: "sources" },
    h("summary", {}, t("sources", { count: travel.sources.length })),
    h("ul", {}, travel.sources.map((each) => h("li", {}, h("code", {}, each)))),
  );
}

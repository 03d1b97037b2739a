// Lets an operator hold the door and the breakers; reads only, until the key may do more.

import * as api from "./api.js";
import { confirm } from "./dialog.js";
import { act, announce, h, once, show } from "./dom.js";
import { hops, listenAgain, onState } from "./state.js";
import { clock, length, roundLength, t, term } from "./words.js";

const LENGTHS = ["30", "60", "300", "900", "3600", "86400"];
const LEVELS = ["CRITICAL_PLUS", "CRITICAL", "SHEDDABLE_PLUS", "SHEDDABLE"];

const WHY = { no_key: true, wrong_key: true };

const authority = { may: false, cause: "", why: "" };
const done = [];
let drawn = () => {};

/** Return whether orders may be given with the key that is there. */
export function mayOrder() {
  return authority.may;
}

/** Ask the gateway whether orders may be given. */
export async function askAuthority() {
  try {
    const answer = await fetch("/v1/admin", { headers: api.operatorHeaders(), cache: "no-store" });
    const told = await answer.json();
    Object.assign(authority, { may: told.may_order, cause: told.cause, why: told.message });
  } catch {
    Object.assign(authority, { may: false, cause: "", why: "" });
  }
  drawn();
}

/** Hold a breaker open or closed, or reset it, once somebody has confirmed it. */
export async function orderBreaker(hop, key, order) {
  const holds = order !== "reset";
  const given = await confirm({
    title: t(`order.${order}.title`, { key, hop: term("hop", hop) }),
    text: t(`order.${order}.means`, { key, hop: term("hop", hop) }),
    fields: holds ? [reasonField(), lengthField("60")] : [],
    confirm: t(`order.${order}`),
    danger: order === "open",
  });
  if (!given) return;
  await obey(t(`order.${order}.title`, { key, hop: term("hop", hop) }), () =>
    api.post(
      "/v1/admin/breakers",
      {
        hop,
        dependency: key,
        order,
        operator: "page",
        ...(holds ? { reason: given.reason, for_s: Number(given.for_s) } : {}),
      },
      api.operatorHeaders(),
    ),
  );
}

async function shed() {
  const given = await confirm({
    title: t("shed.title"),
    text: t("shed.means"),
    fields: [
      reasonField(),
      lengthField("60"),
      {
        name: "up_to",
        label: t("shed.up_to"),
        value: LEVELS[0],
        options: LEVELS.map((each) => [each, term("level", each)]),
      },
    ],
    confirm: t("shed.do"),
    danger: true,
  });
  if (!given) return;
  await obey(t("shed.title"), () =>
    api.post(
      "/v1/admin/shed",
      {
        reason: given.reason,
        for_s: Number(given.for_s),
        up_to: given.up_to,
        operator: "page",
      },
      api.operatorHeaders(),
    ),
  );
}

async function endShed() {
  const given = await confirm({
    title: t("shed.end.title"),
    text: t("shed.end.means"),
    confirm: t("shed.end"),
  });
  if (given) await obey(t("shed.end.title"), () => api.remove("/v1/admin/shed", api.operatorHeaders()));
}

async function obey(what, order) {
  let problem = "";
  try {
    const answer = await order();
    const failed = answer.processes?.find((each) => each.error);
    problem = failed ? `${failed.address}: ${failed.error.message}` : "";
  } catch (error) {
    problem = error.told?.message || t("error.unreachable");
    if (error.status === 401) askAuthority();
  }
  done.unshift({ at: Date.now(), what, problem });
  done.length = Math.min(done.length, 20);
  announce(problem || t("said.obeyed", { what }));
  drawn();
}

function reasonField() {
  return { name: "reason", label: t("order.reason"), required: true, hint: t("order.reason.hint") };
}

function lengthField(value) {
  return {
    name: "for_s",
    label: t("order.length"),
    value,
    options: LENGTHS.map((each) => [each, roundLength(Number(each))]),
  };
}

/** Show the view; return what ends it. */
export function mount(root) {
  const key = h("form", { class: "card", "aria-label": t("operator.key") });
  const door = h("section", { class: "card", "aria-label": t("door") });
  const log = h("section", { class: "card", "aria-label": t("orders") });
  root.append(h("div", { class: "columns even" }, door, key), log);
  const draw = once(() => {
    show(key, ...keyForm());
    show(door, ...doorPanel());
    show(log, h("h2", {}, t("orders")), orderLog());
  });
  drawn = draw;
  key.addEventListener("submit", (event) => {
    event.preventDefault();
    api.keys.operator = key.elements.key.value;
    key.elements.key.value = "";
    listenAgain();
    askAuthority();
  });
  act(root, {
    shed,
    end: endShed,
    forget() {
      api.keys.operator = "";
      askAuthority();
    },
  });
  draw();
  askAuthority();
  const end = onState(draw);
  return () => {
    end();
    drawn = () => {};
  };
}

function keyForm() {
  const state = authority.may ? "ok" : "readonly";
  return [
    h("h2", {}, t("operator.key")),
    h(
      "p",
      {},
      h(
        "span",
        { class: `badge ${state}`, "data-testid": "authority", "data-may": String(authority.may) },
        authority.may ? t("operator.may") : t("operator.read_only"),
      ),
    ),
    authority.cause ? h("p", { class: "small muted" }, why()) : null,
    h(
      "div",
      { class: "field" },
      h("label", { for: "operator-key" }, t("operator.key.label")),
      h("input", {
        id: "operator-key",
        name: "key",
        type: "password",
        autocomplete: "off",
        "data-own": true,
      }),
    ),
    h("p", { class: "small muted" }, t("operator.key.hint")),
    h(
      "div",
      { class: "actions" },
      h("button", { type: "submit" }, t("operator.key.use")),
      api.keys.operator
        ? h("button", { type: "button", class: "quiet", "data-do": "forget" }, t("key.forget"))
        : null,
    ),
  ];
}

function why() {
  const words = term("operator.cause", authority.cause);
  return authority.cause in WHY ? words : authority.why;
}

function doorPanel() {
  const gateway = [...hops.values()].find((each) => each.hop === "gateway");
  const door = gateway?.door;
  const state = door?.state ?? "unknown";
  return [
    h("h1", {}, t("door")),
    h(
      "p",
      { class: "door-state" },
      h("span", { class: `badge door-${state}`, "data-testid": "door", "data-state": state }, term("door", state)),
      door?.order ? h("span", {}, door.order.reason) : null,
    ),
    door?.order
      ? h(
          "dl",
          { class: "facts" },
          h("dt", {}, t("shed.up_to")),
          h("dd", {}, term("level", door.order.up_to)),
          h("dt", {}, t("left")),
          h("dd", {}, length(door.order.remaining_ms)),
          h("dt", {}, t("shed.by")),
          h("dd", {}, door.order.operator || "–"),
        )
      : h("p", { class: "muted" }, door ? t("door.open.means") : t("door.none")),
    door?.overload_up_to
      ? h("p", { class: "notice warn" }, t("door.overload", { level: term("level", door.overload_up_to) }))
      : null,
    h("p", { class: "small muted" }, t("door.rejected", { count: door?.rejected ?? 0 })),
    h(
      "div",
      { class: "actions" },
      authority.may && door
        ? [
            h("button", { type: "button", class: "danger", "data-do": "shed" }, t("shed.do")),
            door.order
              ? h("button", { type: "button", "data-do": "end" }, t("shed.end"))
              : null,
          ]
        : null,
    ),
    authority.may ? h("p", { class: "small muted" }, t("operator.breakers")) : null,
  ];
}

function orderLog() {
  if (!done.length) return h("p", { class: "empty muted" }, t("orders.none"));
  return h(
    "ol",
    { class: "changes", "data-testid": "orders" },
    done.map((each) =>
      h(
        "li",
        {},
        h("span", { class: "mono muted small" }, clock(each.at)),
        h("span", {}, each.what),
        each.problem
          ? h("span", { class: "bad" }, each.problem)
          : h("span", { class: "good" }, t("orders.obeyed")),
      ),
    ),
  );
}

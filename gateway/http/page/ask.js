// Asks a question and watches the run travel.

import * as api from "./api.js";
import { act, announce, h, once, show } from "./dom.js";
import { follow } from "./follow.js";
import { panel, problem } from "./run.js";
import { newTravel } from "./travel.js";
import { size, t, term } from "./words.js";

const TICK_MS = 100;
const DELIVERIES = ["restartable", "buffered", "live"];
const EXAMPLES = ["example.1", "example.2", "example.3"];
const AUTO = "auto";

const asked = { question: "", agent: AUTO, deadline: "30", delivery: "restartable", files: [] };
let agents = [];
let travel = null;
let refusal = null;
let sending = false;
let stop = null;
let draw = () => {};

/** Show the view; return what ends it. The run goes on meanwhile. */
export function mount(root) {
  const form = h("form", { class: "ask card", "aria-label": t("ask"), novalidate: true });
  const result = h("section", { class: "card run", "aria-label": t("run") });
  root.append(h("div", { class: "columns" }, form, result));
  draw = once(() => {
    drawForm(form);
    drawResult(result);
  });
  form.addEventListener("input", () => keep(form));
  form.addEventListener("change", () => keep(form));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask(form);
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      ask(form);
    }
  });
  act(form, {
    example(target) {
      form.elements.question.value = asked.question = target.textContent;
      form.elements.question.focus();
    },
    unfile(target) {
      asked.files.splice(Number(target.dataset.number), 1);
      draw();
    },
  });
  act(result, { cancel });
  drawForm(form);
  fill(form);
  drawResult(result);
  loadAgents(form);
  const ticking = setInterval(() => travel && !travel.over && draw(), TICK_MS);
  return () => {
    clearInterval(ticking);
    draw = () => {};
  };
}

async function loadAgents(form) {
  try {
    agents = (await api.get("/v1/models")).data;
    draw();
    requestAnimationFrame(() => fill(form));
  } catch {
    // The list stays with the one that is always there; asking tells what is wrong.
  }
}

function drawForm(form) {
  show(
    form,
    h("h1", {}, t("ask.title")),
    h("label", { for: "question" }, t("question")),
    h("textarea", {
      id: "question",
      name: "question",
      rows: "4",
      maxlength: "8000",
      required: true,
      placeholder: t("question.hint"),
      "data-own": true,
    }),
    h(
      "div",
      { class: "examples", role: "group", "aria-label": t("examples") },
      EXAMPLES.map((key) =>
        h("button", { type: "button", class: "chip", "data-do": "example" }, t(key)),
      ),
    ),
    h(
      "div",
      { class: "fields" },
      field("agent", select("agent", agentOptions())),
      field(
        "deadline_s",
        h("input", {
          id: "deadline_s",
          name: "deadline",
          type: "number",
          min: "1",
          max: "120",
          step: "1",
          inputmode: "numeric",
          "data-own": true,
        }),
      ),
      h(
        "div",
        { class: "field wide" },
        h("label", { for: "delivery" }, t("delivery")),
        select(
          "delivery",
          DELIVERIES.map((each) => [each, term("delivery", each)]),
        ),
        h("p", { class: "small muted" }, t(`delivery.${asked.delivery}.why`)),
      ),
    ),
    h("span", { class: "label" }, t("data_files")),
    h(
      "div",
      { class: "actions" },
      h("input", {
        id: "files",
        class: "hidden",
        type: "file",
        name: "files",
        multiple: true,
        accept: ".csv,.parquet,.sqlite,.db",
        "aria-describedby": "files-hint",
        "data-own": true,
      }),
      h("label", { class: "button small", for: "files" }, t("data_files.choose")),
    ),
    h("p", { id: "files-hint", class: "small muted" }, t("data_files.hint")),
    asked.files.length
      ? h(
          "ul",
          { class: "chosen" },
          asked.files.map((each, number) =>
            h(
              "li",
              {},
              h("span", {}, each.name),
              h("span", { class: "muted small" }, size(each.size)),
              h(
                "button",
                {
                  type: "button",
                  class: "quiet small",
                  "data-do": "unfile",
                  "data-number": String(number),
                  "aria-label": t("file.remove", { name: each.name }),
                },
                "✕",
              ),
            ),
          ),
        )
      : null,
    h(
      "div",
      { class: "actions" },
      h(
        "button",
        { type: "submit", class: "primary", disabled: sending, "data-testid": "submit" },
        sending ? t("ask.sending") : t("ask.submit"),
      ),
      h("kbd", { class: "muted small" }, "Ctrl + Enter"),
    ),
  );
}

function field(key, control) {
  return h("div", { class: "field" }, h("label", { for: key }, t(key)), control);
}

function select(name, options) {
  return h(
    "select",
    { id: name, name },
    options.map(([value, text]) =>
      h("option", { value, selected: value === asked[name] }, text),
    ),
  );
}

function agentOptions() {
  const known = agents.length ? agents.map((each) => each.id) : [AUTO];
  return known.map((each) => [each, term("agent", each)]);
}

function fill(form) {
  form.elements.question.value = asked.question;
  form.elements.deadline.value = asked.deadline;
  form.elements.agent.value = asked.agent;
  form.elements.delivery.value = asked.delivery;
}

function keep(form) {
  asked.question = form.elements.question.value;
  asked.deadline = form.elements.deadline.value;
  asked.agent = form.elements.agent.value || AUTO;
  const changed = asked.delivery !== form.elements.delivery.value;
  asked.delivery = form.elements.delivery.value;
  const chosen = [...form.elements.files.files];
  if (chosen.length) {
    asked.files.push(...chosen);
    form.elements.files.value = "";
  }
  if (changed || chosen.length) draw();
}

async function ask(form) {
  keep(form);
  if (sending) return;
  if (!asked.question.trim()) {
    form.elements.question.focus();
    return;
  }
  stop?.abort();
  stop = new AbortController();
  sending = true;
  refusal = null;
  travel = null;
  draw();
  const deadlineMs = Math.round(Math.min(120, Math.max(1, Number(asked.deadline) || 30)) * 1000);
  try {
    const started = await api.post(
      "/v1/runs",
      {
        question: asked.question,
        agent: asked.agent === AUTO ? "" : asked.agent,
        delivery: asked.delivery,
        sources: await Promise.all(asked.files.map(encoded)),
      },
      { "x-sixhop-deadline-ms": String(deadlineMs) },
    );
    travel = newTravel(started.id, deadlineMs);
  } catch (error) {
    refusal = error.told ?? { message: String(error) };
  }
  sending = false;
  draw();
  if (!travel) return;
  announce(t("said.started"));
  const followed = travel;
  await follow(followed, draw, stop.signal);
  if (followed === travel && followed.over) {
    announce(t("said.ended", { status: term("status", followed.status) }));
    draw();
  }
}

async function encoded(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  const step = 0x8000;
  for (let at = 0; at < bytes.length; at += step) {
    text += String.fromCharCode(...bytes.subarray(at, at + step));
  }
  return { name: file.name, content_base64: btoa(text) };
}

async function cancel() {
  try {
    await api.remove(`/v1/runs/${encodeURIComponent(travel.id)}`);
  } catch {
    // It has ended by itself meanwhile, which its last event tells.
  }
}

function drawResult(result) {
  if (refusal) show(result, problem(refusal));
  else if (travel) show(result, panel(travel, draw));
  else show(result, empty());
}

function empty() {
  return h(
    "div",
    { class: "empty" },
    h("p", { class: "strong" }, sending ? t("ask.sending") : t("ask.empty")),
    h("p", { class: "muted" }, t("ask.empty.more")),
  );
}

// Starts the page: words, the view that the address names, and the line to the gateway.

import * as api from "./api.js";
import * as ask from "./ask.js";
import { confirm } from "./dialog.js";
import { announce, h } from "./dom.js";
import * as dependencies from "./hops.js";
import * as operator from "./operator.js";
import * as runs from "./runs.js";
import { line, listen, listenAgain, onState } from "./state.js";
import { language, loadWords, onLanguage, setLanguage, t, term } from "./words.js";

const VIEWS = {
  "": ask.mount,
  dependencies: dependencies.mount,
  runs: (root, id, tenant) =>
    id ? runs.mountRun(root, id, tenant) : runs.mountList(root),
  operator: operator.mount,
};
const main = document.getElementById("main");
let end = () => {};

function place() {
  const [view = "", ...parts] = location.hash.replace(/^#\/?/, "").split("/");
  return [view in VIEWS ? view : "", ...parts.map(decodeURIComponent)];
}

function draw() {
  const [view, ...parts] = place();
  end();
  // Of its own for every view: what listens there goes with it.
  const root = h("div", { class: "view" });
  main.replaceChildren(root);
  end = VIEWS[view](root, ...parts);
  for (const link of document.querySelectorAll("nav a")) {
    const is = link.dataset.view === view;
    if (is) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  translate();
  document.title = `${t(`nav.${view || "ask"}`)} · sixhop`;
}

function translate() {
  for (const element of document.querySelectorAll("[data-t]")) {
    element.textContent = t(element.dataset.t);
  }
  for (const element of document.querySelectorAll("[data-t-label]")) {
    element.setAttribute("aria-label", t(element.dataset.tLabel));
    element.setAttribute("title", t(element.dataset.tLabel));
  }
}

function theme() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

function showTheme() {
  const button = document.getElementById("theme");
  button.setAttribute("aria-pressed", String(theme() === "dark"));
}

function turnTheme() {
  const next = theme() === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem("sixhop.theme", next);
  } catch {
    // It is forgotten with the tab.
  }
  showTheme();
}

let asking = false;
let declined = false;

/** Who has said no is not asked again by itself. */
function keyWanted() {
  if (!declined) askForKey();
}

async function askForKey() {
  if (asking) return;
  asking = true;
  const given = await confirm({
    title: t("key.title"),
    text: t("key.means"),
    fields: [{ name: "key", label: t("key.label"), type: "password", hint: t("key.hint") }],
    confirm: t("key.use"),
  });
  asking = false;
  declined = !given;
  if (!given) return;
  api.keys.tenant = given.key;
  listenAgain();
  draw();
}

function showLine() {
  const place = document.getElementById("line");
  const state = line.open ? "open" : line.locked ? "locked" : "lost";
  place.dataset.state = state;
  const text = term("line", state);
  if (place.lastElementChild.textContent !== text) {
    place.lastElementChild.textContent = text;
  }
}

async function start() {
  await loadWords();
  const chain = dependencies.drawChain(document.getElementById("chain"));
  document.getElementById("language").addEventListener("click", () => {
    setLanguage(language() === "zh" ? "en" : "zh");
  });
  document.getElementById("theme").addEventListener("click", turnTheme);
  document.getElementById("key").addEventListener("click", askForKey);
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);
  addEventListener("hashchange", () => {
    draw();
    main.focus({ preventScroll: true });
    announce(document.title);
  });
  onLanguage(() => {
    draw();
    chain();
    showLine();
  });
  onState(showLine);
  api.onKeyWanted(keyWanted);
  showTheme();
  draw();
  operator.askAuthority();
  listen();
}

start();

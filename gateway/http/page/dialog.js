// Asks before anything is done that others feel.

import { h } from "./dom.js";
import { t } from "./words.js";

/**
 * Ask somebody to confirm; return what they have filled in, or null.
 *
 * @param title what is about to be done.
 * @param text what it means.
 * @param fields `{name, label, type, value, required, options}` each.
 * @param confirm the word on the button that does it.
 * @param danger whether it takes something away from others.
 */
export function confirm({ title, text, fields = [], confirm: word, danger = false }) {
  const from = document.activeElement;
  const form = h(
    "form",
    { method: "dialog", class: "dialog", novalidate: true },
    h("h2", { id: "dialog-title" }, title),
    text ? h("p", {}, text) : null,
    fields.map(field),
    h("p", { class: "bad small", role: "alert", hidden: true }),
    h(
      "div",
      { class: "actions end" },
      h("button", { type: "button", value: "no", "data-testid": "no" }, t("dialog.cancel")),
      h(
        "button",
        { type: "submit", class: danger ? "danger" : "primary", "data-testid": "yes" },
        word,
      ),
    ),
  );
  const dialog = h("dialog", { "aria-labelledby": "dialog-title" }, form);
  document.body.append(dialog);
  return new Promise((done) => {
    let filled = null;
    const alert = form.querySelector("[role=alert]");
    form.addEventListener("input", () => (alert.hidden = true));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const missing = fields.find((each) => each.required && !form.elements[each.name].value.trim());
      if (missing) {
        alert.textContent = t("dialog.missing", { name: missing.label });
        alert.hidden = false;
        form.elements[missing.name].focus();
        return;
      }
      filled = Object.fromEntries(
        fields.map((each) => [each.name, form.elements[each.name].value.trim()]),
      );
      dialog.close();
    });
    form.querySelector("[value=no]").addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => {
      dialog.remove();
      from?.focus?.();
      done(filled);
    });
    dialog.showModal();
    (form.querySelector("input, select") ?? form.querySelector("[type=submit]")).focus();
  });
}

function field({ name, label, type = "text", value = "", options = null, hint = "" }) {
  const id = `dialog-${name}`;
  const control = options
    ? h(
        "select",
        { id, name },
        options.map(([each, text]) => h("option", { value: each, selected: each === value }, text)),
      )
    : h("input", {
        id,
        name,
        type,
        value,
        autocomplete: type === "password" ? "off" : null,
        maxlength: "200",
      });
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    control,
    hint ? h("p", { class: "small muted" }, hint) : null,
  );
}

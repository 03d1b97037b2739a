// Knows every word of the page in both languages; what is missing shows its key.

export const LANGUAGES = ["en", "zh"];
const known = {};
const listeners = new Set();

/** Load the words of both languages. */
export async function loadWords() {
  await Promise.all(
    LANGUAGES.map(async (language) => {
      const answer = await fetch(`/page/${language}.json`);
      known[language] = await answer.json();
    }),
  );
}

/** Return the language that is shown. */
export function language() {
  return document.documentElement.lang === "zh" ? "zh" : "en";
}

/** Show another language, and remember it. */
export function setLanguage(wanted) {
  document.documentElement.lang = wanted;
  try {
    localStorage.setItem("sixhop.language", wanted);
  } catch {
    // It is forgotten with the tab.
  }
  for (const listener of listeners) listener();
}

/** Be told when the language changes. */
export function onLanguage(listener) {
  listeners.add(listener);
}

/** Return the words of a key; `{name}` is replaced by what is given for it. */
export function t(key, given = {}) {
  const text = known[language()]?.[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => given[name] ?? whole);
}

/** Return the words for a value of the suite's, such as a state; the value itself when it has none. */
export function term(kind, value) {
  return known[language()]?.[`${kind}.${value}`] ?? String(value ?? "");
}

/** Return a length in the unit that reads best. */
export function length(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1) return ms > 0 ? "<1 ms" : "0 ms";
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(ms < 9_995 ? 2 : 1)} s`;
  if (ms < 3_570_000) return `${(ms / 60_000).toFixed(1)} min`;
  return `${(ms / 3_600_000).toFixed(1)} h`;
}

/** Return a length of whole seconds, minutes or hours as people say it. */
export function roundLength(seconds) {
  if (seconds < 60) return `${seconds} s`;
  return seconds < 3600 ? `${seconds / 60} min` : `${seconds / 3600} h`;
}

/** Return a number of bytes in the unit that reads best. */
export function size(bytes) {
  if (!bytes) return "–";
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${Math.round(bytes / 1024)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(bytes < 10 * 1024 * 1024 ? 1 : 0)} MiB`;
}

/** Return a number with its thousands apart. */
export function count(number) {
  return new Intl.NumberFormat(language() === "zh" ? "zh-CN" : "en").format(number ?? 0);
}

/** Return a part of one as percent. */
export function percent(ratio) {
  return `${Math.round((ratio ?? 0) * 100)} %`;
}

/** Return the time of day of an instant. */
export function clock(instant) {
  const at = new Date(instant);
  return Number.isNaN(at.getTime()) ? "–" : at.toLocaleTimeString([], { hour12: false });
}

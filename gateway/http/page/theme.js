// Sets the theme and the language of the document before anything is drawn.
"use strict";
(() => {
  const read = (name) => {
    try {
      return localStorage.getItem(name);
    } catch {
      return null; // A browser may forbid it; then the system decides.
    }
  };
  const root = document.documentElement;
  const theme = read("sixhop.theme");
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;
  const known = read("sixhop.language");
  const wanted = known ?? navigator.language ?? "en";
  root.lang = wanted.toLowerCase().startsWith("zh") ? "zh" : "en";
})();

// Builds elements, and makes what is shown like what is built without replacing what is there.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "path", "circle", "polyline", "line", "rect", "g", "title"]);

/**
 * Return an element. Attributes whose value is null or false are left out; `style` takes an object,
 * because the policy of this page allows no inline styles but lets scripts set them one by one.
 */
export function h(tag, attributes = {}, ...children) {
  const element = SVG_TAGS.has(tag)
    ? document.createElementNS(SVG, tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "style") {
      for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) add(element, child);
    else element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Make the children of an element like those of another tree; what is alike stays, with focus. */
export function show(element, ...children) {
  const wanted = document.createDocumentFragment();
  add(wanted, children);
  morphChildren(element, wanted);
}

function morphChildren(there, wanted) {
  const keyed = new Map();
  for (const child of there.children) {
    if (child.dataset?.key) keyed.set(child.dataset.key, child);
  }
  let place = there.firstChild;
  for (const next of [...wanted.childNodes]) {
    const key = next.dataset?.key;
    let found = key ? keyed.get(key) : place;
    if (!key && found?.dataset?.key) found = null;
    if (found && alike(found, next)) {
      if (found !== place) there.insertBefore(found, place);
      else place = place.nextSibling;
      morph(found, next);
    } else {
      there.insertBefore(next, place);
    }
  }
  while (place) {
    const after = place.nextSibling;
    place.remove();
    place = after;
  }
}

function alike(there, wanted) {
  return there.nodeType === wanted.nodeType && there.nodeName === wanted.nodeName;
}

function morph(there, wanted) {
  if (there.nodeType !== Node.ELEMENT_NODE) {
    if (there.data !== wanted.data) there.data = wanted.data;
    return;
  }
  if (there.hasAttribute("data-own")) return; // Somebody else draws what is in it.
  for (const { name } of [...there.attributes]) {
    if (name !== "style" && !wanted.hasAttribute(name) && name !== "open") {
      there.removeAttribute(name);
    }
  }
  for (const { name, value } of wanted.attributes) {
    if (name !== "style" && there.getAttribute(name) !== value) there.setAttribute(name, value);
  }
  if (there.style && there.style.cssText !== wanted.style.cssText) {
    there.style.cssText = wanted.style.cssText;
  }
  morphChildren(there, wanted);
}

/** Call the action that the clicked element names in `data-do`. */
export function act(root, actions) {
  root.addEventListener("click", (event) => {
    const target = event.target.closest("[data-do]");
    if (target && root.contains(target)) actions[target.dataset.do]?.(target, event);
  });
}

/** Return a function that calls another once before the next frame, however often it is called. */
export function once(draw) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };
}

const announcer = () => document.getElementById("announcer");

/** Have a screen reader say something when it is free. */
export function announce(text) {
  const place = announcer();
  if (place && place.textContent !== text) place.textContent = text;
}

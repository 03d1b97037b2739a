// Speaks with the door that this page came from, and with nobody else.

const TENANT_KEY = "sixhop.key";
const OPERATOR_KEY = "sixhop.operator";
const asked = new Set();

function stored(name) {
  try {
    return sessionStorage.getItem(name) ?? "";
  } catch {
    return "";
  }
}

function store(name, value) {
  try {
    if (value) sessionStorage.setItem(name, value);
    else sessionStorage.removeItem(name);
  } catch {
    // Without storage a key lives as long as the page: nothing else is kept anywhere.
  }
}

export const keys = {
  get tenant() {
    return stored(TENANT_KEY);
  },
  set tenant(value) {
    store(TENANT_KEY, value.trim());
  },
  get operator() {
    return stored(OPERATOR_KEY);
  },
  set operator(value) {
    store(OPERATOR_KEY, value.trim());
  },
};

/** Be told when the door asks for a key. */
export function onKeyWanted(listener) {
  asked.add(listener);
}

/** Is an error that the door has told, or that it could not be reached. */
export class DoorError extends Error {
  constructor(status, told) {
    super(told?.message ?? "");
    this.status = status;
    this.told = told ?? {};
  }
}

function headers(more = {}) {
  const all = { ...more };
  if (keys.tenant) all.authorization = `Bearer ${keys.tenant}`;
  return all;
}

async function send(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { cache: "no-store", ...options, headers: headers(options.headers) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new DoorError(0, { message: "", reason: "UNREACHABLE" });
  }
  if (answer.ok) return answer;
  let told = {};
  try {
    told = (await answer.json()).error ?? {};
  } catch {
    told = { message: answer.statusText };
  }
  if (answer.status === 401 && !path.startsWith("/v1/admin")) {
    for (const listener of asked) listener();
  }
  throw new DoorError(answer.status, told);
}

/** Return the JSON at a path. */
export async function get(path, more = {}) {
  return (await send(path, { headers: more })).json();
}

/** Send a document; return the JSON of the answer. */
export async function post(path, document, more = {}) {
  const answer = await send(path, {
    method: "POST",
    body: JSON.stringify(document),
    headers: { "content-type": "application/json", ...more },
  });
  return answer.json();
}

/** Delete what is at a path; return the JSON of the answer. */
export async function remove(path, more = {}) {
  return (await send(path, { method: "DELETE", headers: more })).json();
}

/** Return the bytes at a path, with their type. */
export async function file(path, more = {}) {
  return (await send(path, { headers: more })).blob();
}

/** Return where something of a run is, and the headers for it: an operator names whose run it is. */
export function runPlace(id, part = "", tenant = null) {
  const path = `/v1/runs/${encodeURIComponent(id)}${part}`;
  if (tenant === null) return [path, {}];
  return [`${path}?tenant=${encodeURIComponent(tenant)}`, operatorHeaders()];
}

/** Return the headers of an order. */
export function operatorHeaders() {
  return keys.operator ? { "x-sixhop-operator-key": keys.operator } : {};
}

/**
 * Yield the events of a stream: `{id, kind, data}`. It ends with the stream; a stream that is cut, or
 * silent for too long, raises. An EventSource could not show a key.
 */
export async function* events(path, { signal, after = "", more = {}, silenceMs = 45_000 } = {}) {
  const wanted = { accept: "text/event-stream", ...more };
  if (after) wanted["last-event-id"] = String(after);
  const silent = new AbortController();
  const signals = signal ? [signal, silent.signal] : [silent.signal];
  let watch = setTimeout(() => silent.abort(), silenceMs);
  try {
    const answer = await send(path, { signal: AbortSignal.any(signals), headers: wanted });
    if (answer.status === 204 || !answer.body) return;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(watch);
      watch = setTimeout(() => silent.abort(), silenceMs);
      rest += value;
      let end;
      while ((end = rest.indexOf("\n\n")) >= 0) {
        const event = parse(rest.slice(0, end));
        rest = rest.slice(end + 2);
        if (event) yield event;
      }
    }
  } finally {
    clearTimeout(watch);
    silent.abort();
  }
}

function parse(block) {
  const event = { id: "", kind: "message", data: null };
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("id: ")) event.id = line.slice(4);
    else if (line.startsWith("event: ")) event.kind = line.slice(7);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
  }
  if (!data.length) return null;
  event.data = JSON.parse(data.join("\n"));
  return event;
}

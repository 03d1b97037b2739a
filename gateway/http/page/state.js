// Knows how every process of the suite does, as the gateway tells it, and what has changed.

import * as api from "./api.js";

const PAUSE_MS = 500;
const MAX_PAUSE_MS = 5000;
const SILENCE_MS = 4000; // Every process tells its state once a second.
const KEPT_SAMPLES = 60;
const KEPT_CHANGES = 40;

/** The processes by hop and address; in the order of the chain, as the gateway tells them. */
export const hops = new Map();
/** What breakers and doors did while this page was open, the newest first. */
export const changes = [];
/** Whether the gateway is heard, or asks for a key first. */
export const line = { open: false, locked: false };

let wake = () => {};
const samples = new Map();
const listeners = new Set();

/** Be told of every change; returns what ends that. */
export function onState(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(change = null) {
  for (const listener of listeners) listener(change);
}

/** Return the recent mean latencies of a dependency, the newest last. */
export function history(hop, key) {
  return samples.get(`${hop} ${key}`) ?? [];
}

/** Listen to the gateway, for ever. */
export async function listen() {
  let pause = PAUSE_MS;
  for (;;) {
    const wanted = { more: api.operatorHeaders(), silenceMs: SILENCE_MS };
    try {
      for await (const event of api.events("/v1/state/events", wanted)) {
        if (event.kind !== "hop") throw new Error(event.data.error?.message);
        pause = PAUSE_MS;
        line.open = true;
        line.locked = false;
        take(event.data);
      }
    } catch (error) {
      line.locked = error.status === 401;
      pause = Math.min(MAX_PAUSE_MS, pause * 2);
    }
    line.open = false;
    tell();
    await new Promise((done) => {
      wake = done;
      setTimeout(done, pause);
    });
  }
}

/** Listen again at once: there is another key. */
export function listenAgain() {
  wake();
}

function take(hop) {
  const name = `${hop.hop}@${hop.address}`;
  const before = hops.get(name);
  hops.set(name, hop);
  let last = null;
  const note = (what) => {
    last = { at: Date.now(), hop: hop.hop, ...what };
    changes.unshift(last);
    changes.length = Math.min(changes.length, KEPT_CHANGES);
  };
  if (before && before.state !== hop.state && before.state !== "unknown") {
    note({ kind: "hop", from: before.state, to: hop.state, why: hop.detail });
  }
  if (before?.door && hop.door && before.door.state !== hop.door.state) {
    note({ kind: "door", from: before.door.state, to: hop.door.state, why: hop.door.order?.reason });
  }
  for (const each of hop.dependencies) {
    const known = before?.dependencies.find((other) => other.key === each.key);
    const wasSo = known?.breaker ?? "closed";
    if (before && wasSo !== each.breaker) {
      note({ kind: "breaker", key: each.key, from: wasSo, to: each.breaker, why: each.reason });
    }
    const kept = samples.get(`${hop.hop} ${each.key}`) ?? [];
    kept.push(each.mean_ms);
    samples.set(`${hop.hop} ${each.key}`, kept.slice(-KEPT_SAMPLES));
  }
  tell(last);
}

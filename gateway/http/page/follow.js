// Reads the events of a run until it has ended, and comes back where it was when the line is cut.

import * as api from "./api.js";
import { fail, take } from "./travel.js";

const MAX_TRIES = 6;
const PAUSE_MS = 400;

/** Follow a run; `changed` is called after every event. Aborting the signal stops it. */
export async function follow(travel, changed, signal) {
  const [path, more] = api.runPlace(travel.id, "/events", travel.tenant);
  for (let tries = 0; tries < MAX_TRIES && !travel.over; tries += 1) {
    try {
      for await (const event of api.events(path, { signal, after: travel.last, more })) {
        tries = 0;
        take(travel, event);
        changed();
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof api.DoorError && error.status >= 400 && error.status !== 503) {
        fail(travel, error.told);
        changed();
        return;
      }
    }
    if (!travel.over) await new Promise((done) => setTimeout(done, PAUSE_MS * 2 ** tries));
    if (signal.aborted) return;
  }
  if (!travel.over) {
    fail(travel, { reason: "UNREACHABLE", message: "" });
    changed();
  }
}

// Follows one run: takes its events, and knows for every hop what it was given, used and had left.

export const CHAIN = ["gateway", "routing", "domain", "tool", "model", "llm"];
const LAST_KINDS = new Set(["ended", "gone"]);

/** Return a run of which nothing is known but its id. */
export function newTravel(id, budgetMs = null, tenant = null) {
  return {
    id,
    tenant, // Whose run it is, when an operator looks; null for one's own.
    budgetMs,
    began: performance.now(),
    last: "",
    status: "running",
    agent: "",
    asked: null,
    routed: null,
    steps: [],
    marks: [],
    thinking: null,
    text: "",
    whole: null, // The text as the door has it, once there is an answer.
    artifacts: [],
    sources: [],
    missing: [],
    model: "",
    usage: null,
    hops: null,
    elapsedMs: null,
    error: null,
    gap: null,
    over: false,
    log: [],
  };
}

/** Return how long a run goes on, or took. */
export function elapsed(travel) {
  return travel.elapsedMs ?? performance.now() - travel.began;
}

/** Take one event; return whether it was the last. */
export function take(travel, { id, kind, data }) {
  if (id) travel.last = id;
  if (typeof data.at_ms === "number") {
    // The run's own clock counts: what came late must not look late.
    travel.began = Math.min(travel.began, performance.now() - data.at_ms);
    if (kind !== "text_delta") travel.log.push({ kind, data });
    else noteText(travel, data);
  }
  takers[kind]?.(travel, data);
  if (LAST_KINDS.has(kind)) travel.over = true;
  return travel.over;
}

function noteText(travel, data) {
  const last = travel.log.at(-1);
  if (last?.kind === "text_delta") {
    last.data = { ...last.data, text: last.data.text + data.text, parts: last.data.parts + 1 };
  } else {
    travel.log.push({ kind: "text_delta", data: { ...data, parts: 1 } });
  }
}

const takers = {
  accepted(travel, data) {
    travel.budgetMs = data.budget_ms || travel.budgetMs;
  },
  routed(travel, data) {
    travel.agent = data.agent;
    travel.routed = data;
  },
  step_started(travel, data) {
    const hop = data.name.startsWith("model") || data.name === "write" ? "model" : "tool";
    travel.steps.push({ ...data, hop, start: data.at_ms, end: null, state: "running", detail: "" });
    travel.thinking = null;
  },
  step_finished(travel, data) {
    let step = travel.steps.find((each) => each.step === data.step && each.end === null);
    if (!step) {
      step = { ...data, hop: "tool", title: "", start: data.at_ms };
      travel.steps.push(step);
    }
    Object.assign(step, { end: data.at_ms, state: data.state, detail: data.detail });
    if (data.state === "skipped" || data.state === "failed") {
      mark(travel, data.state, data.at_ms, "domain", step.title || data.name, data.detail);
    }
  },
  thinking(travel, data) {
    travel.thinking = data;
  },
  text_delta(travel, data) {
    travel.text += data.text;
    travel.thinking = null;
  },
  degraded(travel, data) {
    const hop = data.mechanism === "backup" ? "model" : "domain";
    mark(travel, "degraded", data.at_ms, hop, `${data.mechanism} · ${data.part}`, data.reason);
  },
  restarted(travel, data) {
    travel.text = "";
    mark(travel, "restarted", data.at_ms, "model", "", data.reason);
  },
  finished(travel, data) {
    travel.agent = data.agent || travel.agent;
    travel.model = data.model;
    travel.usage = data.usage;
    travel.missing = data.missing_parts;
    travel.sources = data.sources ?? [];
    travel.thinking = null;
  },
  gap(travel, data) {
    travel.gap = data;
  },
  ended(travel, data) {
    takeRecord(travel, data);
  },
  gone(travel) {
    travel.status = "gone";
  },
  message(travel, data) {
    if (data.error) fail(travel, data.error);
  },
};

/** Take what is kept of a run that has ended, or of one that goes on. */
export function takeRecord(travel, record) {
  travel.status = record.status;
  travel.agent = record.agent || travel.agent;
  travel.model = record.model || travel.model;
  travel.usage = record.usage ?? travel.usage;
  travel.budgetMs = record.budget_ms ?? travel.budgetMs;
  travel.elapsedMs = record.elapsed_ms ?? null;
  travel.hops = record.hops?.length ? record.hops : null;
  travel.artifacts = record.artifacts ?? [];
  travel.missing = record.missing_parts ?? [];
  travel.error = record.error ?? null;
  travel.record = record;
  travel.whole = record.answer?.text ?? null;
  if (record.answer?.sources?.length) travel.sources = record.answer.sources;
  if (record.status !== "running") travel.thinking = null;
}

/** End a run by an error that was told outside of its events. */
export function fail(travel, error) {
  travel.status = "failed";
  travel.error = error;
  travel.elapsedMs ??= performance.now() - travel.began;
  travel.thinking = null;
  travel.over = true;
}

function mark(travel, kind, at, hop, what, why) {
  travel.marks.push({ kind, at, hop, what, why });
}

/** Return the rows of the waterfall, each hop at least once, in the order of the chain. */
export function rows(travel) {
  const found = travel.hops ? reported(travel) : guessed(travel);
  const reached = new Set(found.map((row) => (row.hop === "model_backup" ? "model" : row.hop)));
  for (const hop of CHAIN) {
    if (!reached.has(hop)) found.push(idle(hop));
  }
  for (const each of travel.marks) placed(found, each).marks.push(each);
  return found;
}

/** Return the row on which something happened: of several of its hop, the one that was at work. */
function placed(found, mark) {
  const backup = mark.hop === "model" && found.some((row) => row.hop === "model_backup");
  const hop = backup ? "model_backup" : mark.hop;
  const wanted = found.filter((row) => row.hop === hop && row.start !== null);
  return wanted.find((row) => row.end === null || row.end >= mark.at) ?? wanted.at(-1) ?? found[0];
}

function idle(hop) {
  return { key: `idle ${hop}`, hop, label: "", depth: null, start: null, end: null, marks: [] };
}

/** What the events let one guess while the run goes on: nobody has reported yet. */
function guessed(travel) {
  const until = travel.over ? elapsed(travel) : null;
  const open = (key, hop, label, depth, start, more = {}) => ({
    key,
    hop,
    label,
    depth,
    start,
    end: until,
    given: null,
    left: null,
    state: travel.over ? travel.status : "running",
    marks: [],
    ...more,
  });
  const spent = elapsed(travel);
  const found = [
    open("gateway", "gateway", "", 0, 0, {
      given: travel.budgetMs,
      left: travel.budgetMs === null ? null : Math.max(0, travel.budgetMs - spent),
    }),
  ];
  if (travel.log.length) found.push(open("routing", "routing", "", 1, travel.log[0].data.at_ms));
  if (travel.routed) found.push(open("domain", "domain", travel.agent, 2, travel.routed.at_ms));
  for (const step of travel.steps) {
    if (step.state === "skipped") continue;
    const end = step.end ?? until;
    const state = step.end === null && !travel.over ? "running" : step.state;
    const label = step.hop === "model" ? step.title : step.name;
    found.push(open(`step ${step.step}`, step.hop, label, 3, step.start, { end, state }));
  }
  const row = travel.thinking && found.findLast((each) => each.hop === travel.thinking.hop);
  if (row) {
    row.thinking = travel.thinking;
    row.left = travel.thinking.remaining_ms;
  }
  return found;
}

/** What every hop has reported, as a tree that is written from its root. */
function reported(travel) {
  const pending = [];
  travel.hops.forEach((report, number) => {
    const node = { report, number, below: [] };
    while (pending.length && pending.at(-1).report.depth > report.depth) {
      node.below.unshift(pending.pop());
    }
    pending.push(node);
  });
  const used = travel.elapsedMs ?? 0;
  const root = {
    report: {
      hop: "gateway",
      method: "",
      depth: 0,
      attempt: 1,
      start_ms: 0,
      given_ms: travel.budgetMs,
      used_ms: used,
      left_ms: travel.budgetMs === null ? null : Math.max(0, travel.budgetMs - used),
      outcome: travel.status === "failed" ? (travel.error?.reason ?? "FAILED") : "OK",
    },
    number: -1,
    below: pending,
  };
  return flat(root);
}

function flat(node) {
  const { report } = node;
  const start = report.start_ms;
  const end = start + report.used_ms;
  const reason = String(report.outcome).split("/").at(-1);
  const row = {
    key: `report ${node.number}`,
    hop: report.hop,
    label: report.attempt > 1 ? `${report.method} #${report.attempt}` : report.method,
    depth: report.depth,
    start,
    end,
    given: report.given_ms,
    used: report.used_ms,
    left: report.left_ms,
    work: works(start, end, node.below),
    state: reason === "OK" ? "ok" : "failed",
    reason: reason === "OK" ? "" : reason,
    marks: [],
  };
  const below = [...node.below].sort((a, b) => a.report.start_ms - b.report.start_ms);
  return [row, ...below.flatMap(flat)];
}

/** Return when a hop worked itself: all of its time but its waits for those that it called. */
function works(start, end, below) {
  const waits = below
    .map(({ report }) => [
      Math.max(start, report.start_ms),
      Math.min(end, report.start_ms + report.used_ms),
    ])
    .filter(([from, to]) => from < to)
    .sort((a, b) => a[0] - b[0]);
  const found = [];
  let at = start;
  for (const [from, to] of waits) {
    if (from > at) found.push([at, from]);
    at = Math.max(at, to);
  }
  if (at < end) found.push([at, end]);
  return found;
}

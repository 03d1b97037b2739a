"""Simulates a provider of language models, well or with any fault that real ones have shown.

As a process, with the settings of `[sim]` (`SIXHOP_SIM__PORT`, `SIXHOP_SIM__SEED`, ...)::

    python -m services.model.sim

writes `{"port", "base_url", "control_url", "seed", "model"}` as its first line, serves until
SIGTERM or SIGINT, and writes its verdict as its last line. `sixhop model-sim` is the same for
people.

In a test::

    async with serving(SimSettings(ttft_median_s=0), MonotonicClock()) as simulator:
        simulator.base_url                             # http://127.0.0.1:12345/v1
        simulator.world.selector.replace(["stall?at_token=2&p=0.5"])
        await simulator.world.log.wait_for(lambda log: log.reached("closed", 1))
        simulator.world.verdict()["grade"]

`vocabulary.py` names the faults, `faults.py` their knobs, and docs/model-sim.md has both as tables:

* good answers: none, at-once, reasoning
* refusals: 400 401 402 403 404 408 409 413 422 429 500 502 503 504 529, retry-after, retry-date,
  redirect, context, content-refused, prefill-refusal
* silence and slowness: silent, silent-after-headers, stall, stall-mid-event, stall-mid-chunk,
  stall-after-finish, stall-before-terminator, keep-alive-forever, stall-keep-alive, slow-headers,
  drip-headers, slow-first-token, slow, drip, deaf
* cuts: reset and fin, both also as -before-headers -after-headers -mid-event -mid-chunk
  -after-finish -before-terminator; eof, eof-at-once, eof-unframed, flood, refuse-connections
* events: malformed, not-json, not-an-object, error-event, error-text, error-object, event-error,
  no-choices, choices-null
* finishes: length, content-filter, overloaded, odd-finish, done-without-finish, no-finish,
  no-usage, no-done, duplicate-finish, duplicate-done, bad-arguments
* wrong bodies: html, empty, json, wrong-charset, wrong-type
* framing: crlf, cr, mixed-lines, bom, one-byte, split-utf8, no-space, multiline, extra-events,
  separators, framing
* sequences: flapping, bursts
"""

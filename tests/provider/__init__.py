"""Holds a scriptable provider: a real HTTP server that speaks OpenAI's chat completions, or fails.

It is for tests only. What it does with a request is chosen in this order:

1. the next name of the script's `queue`, if any is left;
2. the request's model, when it is the name of a behaviour, with changes after a question mark:
   `stall`, `stall?after_chunks=2`, `normal?token_count=50&chunk_interval_s=0.02`;
3. the script's `default`, which is `normal`.

Behaviours (`behaviour.py` has all of them and their knobs): `normal`, `at-once`, `reasoning`,
`no-usage`, `no-done`, `tools`, `length`, `silent`, `slow-headers`, `slow-first-chunk`, `stall`,
`stall-after-finish`, `close-after-finish`, `keep-alive-forever`, `truncate`,
`done-without-finish`, `reset`, `close-mid-chunk`, `malformed`, `in-band-error`, `event-error`,
`no-choices`, `html`, `json`, `json-error`, `wrong-charset`, `400`, `400-context`, `400-policy`,
`401`, `402`, `403`, `404`, `429`, `429-soon`, `500`, `503`, `redirect`, `content-filter`,
`overloaded`.

As a process::

    python -m tests.provider --port 0 --script '{"default": "stall", "queue": ["normal", "reset"]}'

prints `{"port": 12345}` as its first line and serves until SIGTERM. `--script` takes JSON or the
path of a JSON file: `default` (a name, with changes after a question mark), `queue` (names, one per
request), `behaviours` (name → knobs), `models` (names for `GET /v1/models`; null answers 404).

In a test::

    async with serving(Script(default="stall")) as provider:
        provider.base_url                          # http://127.0.0.1:12345/v1
        record = await provider.log.wait_for(lambda log: log.closed(1), timeout_s=5)

Over HTTP, so that a test of processes can look and steer:

- `GET /log` → `{"now_ms", "open_count", "connection_count", "requests": [...]}`. Each request has
  `number`, `connection`, `arrived_ms`, `model`, `behaviour`, `headers` (names in lower case),
  `deadline_ms` (X-Sixhop-Deadline-Ms), `message_count`, `prompt_characters`, `max_tokens`,
  `chunks_sent`, `ended` (empty while open; `complete`, `refused`, `client_closed`, or the fault's
  name), `ended_ms`, `closed_ms` (when the client's connection was gone; null before). Instants
  are milliseconds of the machine's monotonic clock, so that processes can compare them.
- `GET /wait?arrived=1`, `?streaming=1`, `?closed=1`, `?idle=1`, with `&timeout_s=5`: answers as
  `/log` does as soon as that many requests have arrived, have been sent a chunk, have lost their
  connection, or (`idle`) none is open; 504 when that does not happen in time.
- `POST /script` with a script replaces the one in force; `DELETE /log` forgets closed requests.
"""

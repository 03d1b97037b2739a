"""Fuzzes for as long as `-max_total_time` says, in seconds; all flags are those of libFuzzer."""

import sys

import atheris

with atheris.instrument_imports(
    include=["services.model.sse", "services.model.completion", "services.model.tool_calls"]
):
    from tests.fuzz.reading import judge

SEEDS = (
    b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n',
    b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
    b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"sql",'
    b'"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}\r\n\r\n',
    b'\xef\xbb\xbf: keep-alive\r\revent: error\rdata: {"message":"died"}\r\r',
)


def once(data: bytes) -> None:
    """Judge one stream; its first bytes say where it is cut, and how it begins."""
    provider = atheris.FuzzedDataProvider(data)
    places = [provider.ConsumeIntInRange(0, 2000) for _ in range(provider.ConsumeIntInRange(0, 8))]
    seeds = [
        SEEDS[provider.ConsumeIntInRange(0, 3)] for _ in range(provider.ConsumeIntInRange(0, 4))
    ]
    judge(b"".join(seeds) + provider.ConsumeBytes(provider.remaining_bytes()), places)


atheris.Setup(sys.argv, once)
atheris.Fuzz()

"""Declares the settings of the simulator."""

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr

from services.runtime.config import Names, Section

Dialect = Literal["deepseek", "openai", "llamacpp"]


class SimSettings(Section):
    """Says how the simulated provider behaves when no fault is asked for."""

    host: str = "127.0.0.1"
    """The address to listen on; loopback, because whoever reaches it may steer it."""
    port: int = Field(default=0, ge=0, le=65535)
    """The TCP port; 0 takes a free one, which is told when it serves."""
    control_port: int = Field(default=0, ge=0, le=65535)
    """A second port for `/sim` and `/verdict`, which stays open while the first refuses
    connections; 0 takes a free one."""
    seed: int = 0
    """What all chance comes from; the same seed and requests give the same answers and faults."""
    script: Path | None = None
    """A TOML file with a timeline of faults, in force from the start."""
    faults: tuple[str, ...] = ()
    """Rules in force from the start, such as `503?p=0.1`; the first that meets a request counts."""
    obeys_words: bool = True
    """Meet the fault that the user's last words ask for, such as `[sim: stall?at_token=5]`: so it
    can be chosen through any client. Off for one of two providers that read the same words."""
    dialect: Dialect = "deepseek"
    """Whose words are used where providers differ: refusals, usage, the first delta."""
    models: Names = ("sim-large", "sim-small")
    """The names that `/v1/models` lists."""
    any_model: bool = True
    """Answer to every name of a model; without, only to those that are listed, else 404."""
    serves_models: bool = True
    """Answer `/v1/models`; some providers do not, and answer 404."""
    serves_health: bool = True
    """Answer `/v1/health`; few providers do, the others answer 404."""
    side_after_s: float = Field(default=0.0, ge=0, le=3600)
    """How long `/v1/models` and `/v1/health` take, seconds; long enough, they hang."""
    api_key: SecretStr = SecretStr("")
    """The key that callers must show, else 401; empty asks for none."""
    window: int = Field(default=131_072, ge=1)
    """The tokens that prompt and answer may have together, else 400; as large models have."""
    answer: str = ""
    """What every answer says, word by word; empty lets the seed write one."""
    answer_tokens: int = Field(default=40, ge=1, le=1_000_000)
    """How many tokens an answer has that the seed writes; some three sentences."""
    thinking: bool = False
    """Reason before answering also when the request does not ask for it; off, as first words then
    come sooner."""
    reasoning_tokens: int = Field(default=12, ge=0, le=1_000_000)
    """How many tokens of reasoning come first where there is any."""
    ttft_median_s: float = Field(default=0.3, ge=0, le=600)
    """The median of the time to the first token, seconds, which is spread lognormally."""
    ttft_sigma: float = Field(default=0.35, ge=0, le=3)
    """The spread of that time: the standard deviation of its logarithm; 0.35 puts the p99 at a bit
    more than twice the median."""
    prefill_s_per_1k: float = Field(default=0.02, ge=0, le=60)
    """What every thousand tokens of the prompt add to the first token, seconds."""
    token_median_s: float = Field(default=0.02, ge=0, le=60)
    """The median of the time between two tokens, seconds: fifty tokens a second."""
    token_sigma: float = Field(default=0.25, ge=0, le=3)
    """The spread of that time: the standard deviation of its logarithm."""
    load_slowdown: float = Field(default=1.0, ge=0, le=100)
    """How much slower all of it is when every slot is taken: 1 doubles every time, half the load
    adds half of that."""
    max_concurrency: int = Field(default=64, ge=1, le=100_000)
    """How many requests are worked on at a time; the others wait in order."""
    max_queued: int = Field(default=1000, ge=0, le=100_000)
    """How many requests may wait; one more is refused by 429. 0 makes it a pure limit of
    concurrency."""
    queue_timeout_s: float = Field(default=600.0, gt=0, le=3600)
    """How long a request may wait before its connection is closed; DeepSeek's ten minutes."""
    keep_alive_interval_s: float = Field(default=2.0, gt=0, le=600)
    """How often a waiting stream is sent a comment, seconds, and a waiting request an empty line;
    often enough that no idle limit on bytes fires."""
    departure_notice_s: float = Field(default=0.0, ge=0, le=3600)
    """How long work goes on after the client left, seconds; some providers notice
    late, and bill."""
    write_timeout_s: float = Field(default=120.0, gt=0, le=3600)
    """How long a client may read nothing before its connection is reset, seconds."""
    idle_timeout_s: float = Field(default=75.0, gt=0, le=3600)
    """How long a connection may be idle between two requests, seconds; as servers have it."""
    max_log_count: int = Field(default=5000, ge=1, le=1_000_000)
    """How many requests the log keeps; older ones are forgotten first."""

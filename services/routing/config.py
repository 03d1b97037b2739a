"""Defines the settings of the routing room."""

from pydantic import Field, SecretStr, model_validator

from services.runtime.config import HopSettings, Section
from services.runtime.redis_url import RedisUrl
from services.runtime.setting_text import SettingError


class BoardSettings(Section):
    """Says how the health board learns about the replicas of the domain hop, and how it chooses."""

    poll_interval_s: float = Field(default=30.0, gt=0, le=3600)
    """How often each replica is asked for its state, seconds, give or take a fifth; in between,
    runs and load reports tell more."""
    recheck_interval_s: float = Field(default=1.0, gt=0, le=60)
    """How soon one that is away is asked again, seconds, each time twice as long up to eight times:
    a process that was restarted is found before anybody misses it."""
    poll_timeout_s: float = Field(default=2.0, gt=0, le=60)
    """How long it may take to tell its state, seconds; no policy delays the answer."""
    near_ratio: float = Field(default=1.25, ge=1, le=10)
    """Chance decides among replicas whose expected time is up to so many times the least: several
    routing processes that know the same must not all choose the same."""
    doubt_ratio: float = Field(default=3.0, ge=1, le=1000)
    """A replica that is so many times as slow as the best gets a probe now and then; less is
    chance."""
    probe_interval_s: float = Field(default=5.0, gt=0, le=3600)
    """How long a replica in doubt has to have had no run before one goes there as a probe, seconds;
    long enough for what ails it to pass."""
    probe_ratio: float = Field(default=0.05, ge=0, le=1)
    """The part of the runs that may be probes, because a probe may be a run lost."""
    max_failures: int = Field(default=3, ge=1, le=1000)
    """After so many failures in a row a replica is sick; fewer happen to the well."""
    sick_s: float = Field(default=30.0, gt=0, le=3600)
    """How long it stays so without a probe that ends well, seconds: as long as a breaker is
    open."""
    half_life_s: float = Field(default=30.0, gt=0, le=3600)
    """After so long without news, seconds, what is known of a replica's pace weighs half: longer
    than a burst, shorter than a deployment."""
    min_busy_s: float = Field(default=0.25, gt=0, le=60)
    """How long a replica that has refused a run for its load is passed over, seconds, at least;
    longer when it asks for it."""
    default_limit: int = Field(default=256, ge=1)
    """How many calls a replica may have in flight that has told no limit; what a hop lets in when
    nothing is configured."""
    redis_url: RedisUrl = SecretStr("")
    """Where routing processes share what they learn, such as `redis://host:6379/0`; empty keeps the
    board of each its own. A secret, because it may hold a password."""
    redis_prefix: str = Field(default="sixhop:board", min_length=1, max_length=100)
    """What all keys there begin with; suites that use one Redis need one each."""
    share_interval_s: float = Field(default=1.0, ge=0.1, le=60)
    """How often they exchange it, seconds; what each learns by itself is there at once."""
    share_expiry_s: float = Field(default=10.0, ge=1, le=3600)
    """How long the word of a process is kept that tells no more, seconds: some exchanges may be
    missed, and one that has ended must not speak on."""

    @model_validator(mode="after")
    def _outlives(self) -> "BoardSettings":
        if self.share_expiry_s < 2 * self.share_interval_s:
            least_s = 2 * self.share_interval_s
            advice = f"write at least {least_s:g}, which is twice share_interval_s"
            raise SettingError("share_expiry_s", self.share_expiry_s, advice)
        return self


class RoutingSettings(HopSettings):
    """Says how sure routing has to be, and how it keeps up with the agents."""

    min_margin: float = Field(default=0.012, ge=0, le=1)
    """How far the best agent must lead the runner-up; below it the fallback agent answers.

    The scores of the embedding model lie between 0.8 and 0.95, so a margin decides, not a score.
    """
    fallback_agent: str = "chat"
    """Answers when no agent leads clearly; it needs neither data nor documents."""
    data_agent: str = "reports"
    """The same for a question that brings its own data: it must not be answered without it."""
    refresh_interval_s: float = Field(default=30.0, gt=0, le=3600)
    """How often the agents are asked for again, seconds; they change with a deployment only."""
    refresh_timeout_s: float = Field(default=3.0, gt=0, le=60)
    """How long one look at the agents may take, seconds; a busy hop answers within one."""
    retry_interval_s: float = Field(default=0.25, gt=0, le=60)
    """How soon the first look is repeated while the agents cannot be reached, seconds; until then
    nobody is served."""
    board: BoardSettings = BoardSettings()
    """The health board, which chooses among the replicas of the domain hop."""

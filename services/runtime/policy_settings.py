"""Reads what the configuration says to every policy."""

from dataclasses import dataclass

from services.runtime.circuit import BreakerConfig
from services.runtime.config import Config
from services.runtime.policies.adaptive import AdaptiveConfig
from services.runtime.policies.admission import AdmissionConfig
from services.runtime.policies.bulkhead import BulkheadConfig
from services.runtime.policies.fallback import FallbackConfig
from services.runtime.policies.hedge import HedgeConfig
from services.runtime.policies.limit import LimitConfig
from services.runtime.policies.retry import RetryConfig
from services.runtime.policies.self_ejection import SelfEjectionConfig
from services.runtime.policies.shed import ShedConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings:
    """Holds the section of each policy, by the section's name."""

    breaker: BreakerConfig
    retry: RetryConfig
    hedge: HedgeConfig
    fallback: FallbackConfig
    adaptive: AdaptiveConfig
    bulkhead: BulkheadConfig
    admission: AdmissionConfig
    limit: LimitConfig
    shed: ShedConfig
    self_ejection: SelfEjectionConfig


def policy_settings(config: Config) -> PolicySettings:
    """Return every section as its policy declares it.

    Raises:
        ConfigError: a section is wrong.
    """
    return PolicySettings(
        breaker=config.policy("breaker", BreakerConfig),
        retry=config.policy("retry", RetryConfig),
        hedge=config.policy("hedge", HedgeConfig),
        fallback=config.policy("fallback", FallbackConfig),
        adaptive=config.policy("adaptive", AdaptiveConfig),
        bulkhead=config.policy("bulkhead", BulkheadConfig),
        admission=config.policy("admission", AdmissionConfig),
        limit=config.policy("limit", LimitConfig),
        shed=config.policy("shed", ShedConfig),
        self_ejection=config.policy("self_ejection", SelfEjectionConfig),
    )

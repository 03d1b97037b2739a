"""Writes the answer of a report from its facts, without any model."""

from dataclasses import dataclass

from services.domain.metrics import prose_en, prose_zh
from services.domain.metrics.facts import Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """Holds an answer in words."""

    headline: str
    """The answer itself, one sentence, complete alone."""
    support: tuple[str, ...]
    """Two or three facts that stand behind it."""

    @property
    def text(self) -> str:
        """Return all of it as one paragraph."""
        joint = " " if self.headline.endswith(".") else ""
        return joint.join((self.headline, *self.support))


def prose_of(facts: Facts) -> Prose:
    """Write the answer in the language of the query."""
    if facts.query.language == "zh":
        if facts.empty:
            return Prose(headline=prose_zh.nothing(facts), support=())
        return Prose(headline=prose_zh.headline(facts), support=tuple(prose_zh.support(facts)))
    if facts.empty:
        return Prose(headline=prose_en.nothing(facts), support=())
    return Prose(headline=prose_en.headline(facts), support=tuple(prose_en.support(facts)))


def title_of(facts: Facts) -> str:
    """Return a title for the chart and the report."""
    return prose_zh.title(facts) if facts.query.language == "zh" else prose_en.title(facts)


def brief_of(facts: Facts) -> str:
    """Return the facts in a few short lines, for a model to put into words."""
    prose = prose_of(facts)
    return "\n".join((prose.headline, *prose.support[:2]))

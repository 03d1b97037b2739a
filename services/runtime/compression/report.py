"""Says in a sentence what a compression did."""

from dataclasses import dataclass, replace

from services.runtime.compression.tokens import TokenCount


@dataclass(frozen=True, slots=True, kw_only=True)
class Compression:
    """Reports one compression."""

    dropped_rounds: int
    """How many rounds were left out, the oldest."""
    kept_rounds: int
    """How many rounds are whole."""
    tokens_before: int
    """What the whole conversation would have cost to read, as an estimate or by the counter."""
    tokens_after: int
    """What is left costs."""
    exact: bool
    """True when `tokens_after` is the count of the model's own tokenizer."""
    facts_kept: int = 0
    """How many numbers, dates, ids, names and so on of the rounds left out are in the note."""
    keywords: tuple[str, ...] = ()
    """The keywords of the rounds left out that are in the note, best first."""

    def sentence(self, language: str) -> str:
        """Return the report in one sentence, `zh` in Chinese and else English."""
        return self._chinese() if language == "zh" else self._english()

    def _english(self) -> str:
        counted = "counted" if self.exact else "estimated"
        if not self.dropped_rounds:
            return f"the whole conversation fits ({self.tokens_after:,} tokens, {counted})"
        rounds = "round was" if self.dropped_rounds == 1 else "rounds were"
        kept = f"; {self.facts_kept} facts were kept" if self.facts_kept else ""
        keywords = f"; keywords: {', '.join(self.keywords)}" if self.keywords else ""
        return (
            f"the {self.dropped_rounds} oldest {rounds} left out and the last {self.kept_rounds} "
            f"kept whole, from about {self.tokens_before:,} tokens to {self.tokens_after:,} "
            f"({counted}){kept}{keywords}"
        )

    def _chinese(self) -> str:
        counted = "实际计数" if self.exact else "估算"
        if not self.dropped_rounds:
            return f"整个对话放得下（{self.tokens_after} 个 token，{counted}）"
        kept = f"；保留了 {self.facts_kept} 条事实" if self.facts_kept else ""
        keywords = f"；关键词：{'、'.join(self.keywords)}" if self.keywords else ""
        return (
            f"省略了最早的 {self.dropped_rounds} 轮，最近 {self.kept_rounds} 轮完整保留，"
            f"从约 {self.tokens_before} 个 token 减到 {self.tokens_after} 个（{counted}）"
            f"{kept}{keywords}"
        )

    def counted(self, count: TokenCount) -> "Compression":
        """Return the report with what the model's own counter says of the result."""
        return replace(self, tokens_after=count.count, exact=count.exact)

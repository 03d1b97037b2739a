"""Says what a compression did."""

from services.runtime.compression.report import Compression
from services.runtime.compression.tokens import TokenCount

REPORT = Compression(
    dropped_rounds=41,
    kept_rounds=5,
    tokens_before=88_120,
    tokens_after=7_912,
    exact=False,
    facts_kept=57,
    keywords=("laptop battery", "refund"),
)


def test_a_compression_is_told_in_an_english_sentence() -> None:
    assert REPORT.sentence("en") == (
        "the 41 oldest rounds were left out and the last 5 kept whole, from about 88,120 tokens "
        "to 7,912 (estimated); 57 facts were kept; keywords: laptop battery, refund"
    )


def test_a_compression_is_told_in_a_chinese_sentence() -> None:
    assert REPORT.sentence("zh") == (
        "省略了最早的 41 轮，最近 5 轮完整保留，从约 88120 个 token 减到 7912 个（估算）；"
        "保留了 57 条事实；关键词：laptop battery、refund"
    )


def test_an_exact_count_is_told_as_one() -> None:
    counted = REPORT.counted(TokenCount(7_500, exact=True))

    assert "to 7,500 (counted)" in counted.sentence("en")
    assert "减到 7500 个（实际计数）" in counted.sentence("zh")


def test_a_conversation_that_fits_whole_is_told_so() -> None:
    whole = Compression(
        dropped_rounds=0, kept_rounds=4, tokens_before=900, tokens_after=900, exact=True
    )

    assert whole.sentence("en") == "the whole conversation fits (900 tokens, counted)"
    assert whole.sentence("zh") == "整个对话放得下（900 个 token，实际计数）"

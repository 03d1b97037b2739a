"""Makes conversations, and counters that are easy to reckon with."""

from collections.abc import Iterable, Sequence

from hypothesis import strategies as st

from services.runtime.compression.tokens import TokenCount
from services.runtime.conversation import Message, ToolCall

SYSTEM = Message("system", "You answer questions about orders.")

_WORDS = (
    "revenue", "supplier", "refund", "Alice Chen", "ORD-2026-00123", "€1,240.50", "3 March 2026",
    "工厂", "订单号A-1001", "退款1,240.50元", "2026年3月14日", "，", "。", "\n", "12 kg",
    "“weak quarters”",
)  # fmt: skip


class CharacterCounter:
    """Counts a token for each character and message, and what it was asked to count."""

    def __init__(self) -> None:
        """Begin with nothing counted."""
        self.counted_characters = 0
        self.calls = 0

    def count(self, messages: Sequence[Message]) -> TokenCount:
        """Return the characters of all texts, and one for each message."""
        self.calls += 1
        length = sum(len(each.content) + len(each.reasoning) for each in messages)
        length += sum(len(call.arguments) for each in messages for call in each.tool_calls)
        self.counted_characters += length
        return TokenCount(length + len(messages), exact=True)


class WholeWordCounter:
    """Counts different words: the parts of a conversation cost more than the whole."""

    def count(self, messages: Sequence[Message]) -> TokenCount:
        """Return how many different words there are."""
        words = {word for each in messages for word in f"{each.content} {each.reasoning}".split()}
        return TokenCount(len(words), exact=True)


class SurchargingCounter:
    """Counts more for the whole than for its parts."""

    def count(self, messages: Sequence[Message]) -> TokenCount:
        """Return the characters, and the square of the number of messages."""
        length = sum(len(each.content) + len(each.reasoning) for each in messages)
        return TokenCount(length + len(messages) ** 2, exact=True)


def chat(*questions: str, system: Message | None = SYSTEM) -> list[Message]:
    """Return a conversation in which each question is answered by `ok`."""
    head = [system] if system else []
    return [*head, *(each for text in questions for each in exchange(text))]


def exchange(question: str, answer: str = "ok") -> list[Message]:
    """Return a question and its answer."""
    return [Message("user", question), Message("assistant", answer)]


def tool_exchange(
    question: str, *, call_id: str, result: str, reasoning: str = ""
) -> list[Message]:
    """Return a question that is answered by way of a tool."""
    call = ToolCall(call_id, "lookup", '{"q": 1}')
    return [
        Message("user", question),
        Message("assistant", "", (call,), reasoning=reasoning),
        Message("tool", result, tool_call_id=call_id),
        Message("assistant", "found it", reasoning="so that is all"),
    ]


def history(round_count: int, *, words: int = 300) -> list[Message]:
    """Return a long conversation: each round has an order, a date and an amount of its own."""
    return chat(*(paragraph(index, words) for index in range(round_count)))


def paragraph(index: int, words: int) -> str:
    """Return what a user says of one order."""
    filler = " ".join(("supplier", "gateway", "shipment", "warranty")[i % 4] for i in range(words))
    return f"Order ORD-2026-{index:05d} of {1 + index % 28} March 2026 cost €{index}.50. {filler}."


def chinese_history(round_count: int) -> list[Message]:
    """Return a long Chinese conversation with an order, a date and an amount in each round."""
    return chat(
        *(
            f"2026年3月{1 + index % 28}日，订单号A-{index:04d}的客户要求退款{index}.50元。"
            + "供应商的熔断器打开了，网关把笔记本电脑的订单退回。" * 12
            for index in range(round_count)
        ),
        system=Message("system", "你回答关于订单的问题。"),
    )


def text_of(messages: Iterable[Message]) -> str:
    """Return all content, one message a line."""
    return "\n".join(message.content for message in messages)


_ids = st.sampled_from(["", "call_0", "call_1", "call_2"])
_texts = st.lists(st.one_of(st.sampled_from(_WORDS), st.text(max_size=8)), max_size=12).map(
    " ".join
)
_calls = st.lists(_ids, max_size=2).map(
    lambda ids: tuple(ToolCall(each, "lookup", '{"order": "A-1001"}') for each in ids)
)
messages = st.one_of(
    st.builds(Message, st.just("user"), _texts),
    st.builds(Message, st.just("system"), _texts),
    st.builds(Message, st.just("tool"), _texts, tool_call_id=_ids),
    st.builds(Message, st.just("assistant"), _texts, _calls, reasoning=_texts),
)
conversations = st.lists(messages, min_size=1, max_size=24)
"""Whatever could be sent, with dangling calls and results."""

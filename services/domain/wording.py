"""Says to people, in the language of their run, what an answer lacks and why."""

import math
from collections.abc import Iterable

from services.runtime.call import Degradation, Fallback
from services.runtime.language import language_of
from services.runtime.output_limit import LimitedBy, OutputLimit
from services.runtime.switch import Switch

_BUSY = ("BULKHEAD_FULL", "LOAD_SHED", "DEPENDENCY_OVERLOADED", "QUOTA_EXCEEDED")
_WHY = {
    "CIRCUIT_OPEN": (
        "{tool} is unavailable now: it failed or was slow too often",
        "{tool} 暂时不可用：它近来失败或过慢的次数太多",
    ),
    **dict.fromkeys(_BUSY, ("{tool} has too much to do now", "{tool} 目前过于繁忙")),
}
_OTHERWISE = ("{message}", "{tool} 没有给出结果{message}")
FIRST_MODEL_ZH = {
    **dict.fromkeys(("NO_ANSWER", "SELF_TIMEOUT"), "首选模型没有及时作答"),
    **dict.fromkeys(("UNREACHABLE", "SELF_UNAVAILABLE"), "无法连接首选模型"),
    **dict.fromkeys(
        ("CONNECTION_LOST", "STREAM_LOST", "TRUNCATED", "CANCELLED"), "首选模型的回答中断了"
    ),
    **dict.fromkeys(
        (*_BUSY, "PROVIDER_OVERLOADED", "PROVIDER_RATE_LIMITED"), "首选模型目前过于繁忙"
    ),
    "BUDGET_TOO_SMALL": "剩余时间不够首选模型作答",
    "CIRCUIT_OPEN": "首选模型暂时不可用",
    "CONTEXT_LENGTH": "对话超出了首选模型的长度",
}
"""By the reason of the error's origin."""
_CUT_OFF = {
    LimitedBy.CALLER: (
        "{name} was cut off at the limit of {n} tokens that this agent sets",
        "{name}写到该智能体设定的上限（{n} 个 token）时被截断",
    ),
    LimitedBy.SETTINGS: (
        "{name} was cut off at the limit of {n} tokens that is set for its answers",
        "{name}写到为其回答设定的上限（{n} 个 token）时被截断",
    ),
    LimitedBy.TIME: (
        "{name} was cut off after {n} tokens: there was no time for more",
        "{name}写了 {n} 个 token 后被截断：没有时间再写",
    ),
    LimitedBy.PROVIDER: (
        "{name} was cut off by its provider after {n} tokens",
        "{name}写了 {n} 个 token 后被其提供方截断",
    ),
    LimitedBy.UNKNOWN: ("{name} was cut off at its token limit", "{name}写到长度上限时被截断"),
}
_CUT_OFF_BY_CLIENT = (
    "{name} was cut off at the limit of {n} tokens that was asked for",
    "{name}写到所要求的上限（{n} 个 token）时被截断",
)


def _pick(texts: tuple[str, str], language: str) -> str:
    return texts[language == "zh"]


def why(tool: str, degradation: Degradation, language: str) -> str:
    """Return why the answer of a tool is not there."""
    text = _pick(_WHY.get(degradation.reason, _OTHERWISE), language)
    return text.format(tool=tool, message=_original(degradation.message, language))


def failed(tool: str, problem: str, language: str) -> str:
    """Return that a step failed, and with what."""
    if language != "zh" or language_of(problem) == "zh":
        return problem
    return f"{tool} 失败{_original(problem, language)}"


def _original(message: str, language: str) -> str:
    """Return what a hop or a provider said, in Chinese as the quotation that it is.

    Errors are told in English wherever they come from: their reader may be anybody.
    """
    if language != "zh":
        return message
    return f"：{message}" if language_of(message) == "zh" else f"（原文：{message}）"


def another_model(switch: Switch, language: str) -> str:
    """Return why another model wrote than the one that was asked first."""
    name = switch.model or _pick(("the backup model", "备用模型"), language)
    problem = switch.problem or _pick(("the first model would be late", "首选模型会太慢"), language)
    if switch.problem and language == "zh":
        known = FIRST_MODEL_ZH.get(switch.origin_reason, "首选模型出错")
        problem = known + _original(switch.problem, language)
    parts = [
        _pick(("{name} answers: ", "由{name}代为回答："), language).format(name=name) + problem
    ]
    if switch.continued:
        parts.append(_pick(("it goes on from what was there", "它接着已有的内容写"), language))
    if switch.compression:
        parts.append(switch.compression)
    return _pick(("; ", "；"), language).join(parts)


def unavailable(tool: str, back_in_s: float | None, language: str) -> str:
    """Return that a tool cannot be used for now, and when it is tried again, if that is known."""
    text = _pick(_WHY["CIRCUIT_OPEN"], language).format(tool=tool)
    if back_in_s is None:
        return text
    again = _pick(("; it is tried again in {n} s", "，{n} 秒后会再次尝试"), language)
    return text + again.format(n=math.ceil(back_in_s))


def not_allowed(tool: str, language: str) -> str:
    """Return that a tool may not be used, whoever asks for this tenant."""
    texts = (
        "{tool} is not among the tools that this tenant may use",
        "{tool} 不在该租户可以使用的工具之内",
    )
    return _pick(texts, language).format(tool=tool)


def too_late(left_s: float, needed_s: float, language: str) -> str:
    """Return that a step does not fit the time that is left."""
    text = _pick(
        (
            "{left:.1f} s are left and it needs {needed:.1f} s",
            "只剩 {left:.1f} 秒，而它需要 {needed:.1f} 秒",
        ),
        language,
    )
    return text.format(left=max(0.0, left_s), needed=needed_s)


def took_too_long(limit_s: float, language: str) -> str:
    """Return that a step was ended so that those after it have their time."""
    text = _pick(
        (
            "it was not done after {limit:.1f} s, and the rest of the answer needs the time left",
            "{limit:.1f} 秒后仍未完成，剩余时间要留给答案的其余部分",
        ),
        language,
    )
    return text.format(limit=limit_s)


def repeated(tool: str, language: str) -> str:
    """Return that a run goes round in circles."""
    text = _pick(
        (
            "{tool} was asked for with the same arguments before: the run goes round in circles",
            "{tool} 已经用相同的参数执行过：运行在原地打转",
        ),
        language,
    )
    return text.format(tool=tool)


def not_used(model: str, problem: str, language: str) -> str:
    """Return that a model's text was not used, and what is wrong with it."""
    text = _pick(
        ("the text of {name} was not used: {problem}", "未采用{name}的文字：{problem}"), language
    )
    return text.format(name=model or _pick(("the model", "模型"), language), problem=problem)


def cut_off(model: str, limit: OutputLimit | None, language: str, *, callers: bool) -> str:
    """Return that a model's text ends at a limit, at which, and whose that is.

    Args:
        model: who wrote.
        limit: where it ends; None when nobody has told.
        language: of the run.
        callers: whether the limit that the model hop was given is the client's, not the agent's.
    """
    whose = LimitedBy.UNKNOWN if limit is None else limit.limited_by
    texts = _CUT_OFF[whose]
    if whose is LimitedBy.CALLER and callers:
        texts = _CUT_OFF_BY_CLIENT
    count = 0 if limit is None else limit.token_count
    return _pick(texts, language).format(name=model, n=count)


def ends_at_limit(language: str) -> str:
    """Return that a text was cut off, as what is wrong with it."""
    return _pick(("it was cut off at its limit", "它在长度上限处被截断"), language)


def foreign_number(model: str, number: str, language: str) -> str:
    """Return that a model states a number that it was not given."""
    texts = ("{name} says {number}, which the documents do not", "{name}给出的{number}在资料中没有")
    return _pick(texts, language).format(name=model, number=number)


def empty_answer(language: str) -> str:
    """Return that a model wrote nothing."""
    return _pick(("the model's answer was empty", "模型的回答是空的"), language)


def no_model(problem: str, language: str) -> str:
    """Return that no model wrote an answer, and why."""
    return _pick(("{problem}", "模型没有给出回答{problem}"), language).format(
        problem=_original(problem, language)
    )


def read_in_part(character_count: int, language: str) -> str:
    """Return that of a question only the beginning was read."""
    texts = ("only its first {n} characters were read", "只读取了前 {n} 个字符")
    return _pick(texts, language).format(n=character_count)


def age_text(age_s: float, language: str) -> str:
    """Return how old something is: seconds up to two minutes, then minutes, then hours."""
    for unit_s, limit_s, texts in (
        (1.0, 120.0, ("{n} s old", "{n} 秒前")),
        (60.0, 7200.0, ("{n} min old", "{n} 分钟前")),
    ):
        if age_s < limit_s:
            return _pick(texts, language).format(n=round(age_s / unit_s))
    return _pick(("{n} h old", "{n} 小时前"), language).format(n=round(age_s / 3600.0))


def given_instead(degradation: Degradation, language: str) -> str:
    """Return what was given in place of a tool's answer."""
    if degradation.mechanism is Fallback.CACHE:
        text = _pick(("an earlier answer, {age}", "使用了之前的结果（{age}）"), language)
        return text.format(age=age_text(degradation.age_s, language))
    return _pick(("its default", "使用了默认值"), language)


def stale_note(ages_s: Iterable[float], language: str) -> str:
    """Return the sentence that marks an answer that was made of earlier ones; empty for none."""
    oldest_s = max(ages_s, default=None)
    if oldest_s is None:
        return ""
    text = _pick(
        (
            "This answer is not fresh: it uses earlier results, up to {age}.",
            "此答案并非最新：它使用了之前的结果，最早的为{age}。",
        ),
        language,
    )
    return text.format(age=age_text(oldest_s, language))


def prompt_note(tools: Iterable[str], language: str) -> str:
    """Return the sentence that tells a model which tools it cannot count on; empty for none."""
    names = ", ".join(sorted(tools))
    if not names:
        return ""
    text = _pick(
        (
            "These tools cannot be used right now: {names}. Promise nothing that needs them.",
            "以下工具目前不可用：{names}。不要承诺需要它们的事情。",
        ),
        language,
    )
    return text.format(names=names)

"""Says to people, in the language of their question, that a part of an answer is a lesser one."""

from gateway.cli.events import Degraded

_HOW = {
    "cache": ("an earlier answer", "之前的结果"),
    "backup": ("the backup model", "备用模型"),
    "default": ("a default", "默认值"),
    "template": ("a template", "模板"),
    "extract": ("a passage of the documents", "资料原文"),
    "partial": ("what there is", "已有的部分内容"),
}
_PARTS = {
    "answer": "回答",
    "chart": "图表",
    "columns": "数据结构",
    "numbers": "数据",
    "pdf": "PDF 报告",
    "prose": "文字",
    "question": "问题",
    "search": "资料查找",
    "the end of the answer": "回答的结尾",
}
SKIP = "skip"


def degraded_text(degraded: Degraded, language: str) -> str:
    """Return what a person is told; words that are newer than this client are shown as they are."""
    chinese = language == "zh"
    how = _HOW.get(degraded.mechanism, (degraded.mechanism,) * 2)[chinese]
    if degraded.age_s > 0:
        age = _age(degraded.age_s, chinese=chinese)
        how += f"（{age}）" if chinese else f", {age}"
    part = part_text(degraded.part, language)
    if degraded.mechanism == SKIP:
        if chinese:
            return f"已降级：缺少{part}，原因：{degraded.reason}"
        return f"degraded: {part} left out, because {degraded.reason}"
    if chinese:
        return f"已降级：{part}使用了{how}，原因：{degraded.reason}"
    return f"degraded: {part} by {how}, because {degraded.reason}"


def part_text(part: str, language: str) -> str:
    """Return what a part is called."""
    return _PARTS.get(part, part) if language == "zh" else part


def _age(age_s: float, *, chinese: bool) -> str:
    """Return an age for people: seconds up to two minutes, then minutes, then hours."""
    if age_s < 120:
        count, words = age_s, ("s old", "秒前")
    elif age_s < 7200:
        count, words = age_s / 60, ("min old", "分钟前")
    else:
        count, words = age_s / 3600, ("h old", "小时前")
    return f"{count:.0f} {words[chinese]}"

"""Says in the language of a question why a model's text is not shown."""

OBJECTIONS = {
    "length": ("it is too short or too long to be an answer", "长度不合适，不像回答"),
    "junk": ("it is not plain prose", "不是普通的文字"),
    "language": ("it is not in the language of the question", "与问题的语言不同"),
    "unnamed": ("it does not name {name}", "没有提到{name}"),
    "no-number": ("it states no number", "没有给出数字"),
    "spelled": ("it says “{said}”, which cannot be checked", "其中的“{said}”无法核对"),
    "unchecked": ("it says something that cannot be checked", "有无法核对的说法"),
    "number": ("it says {said}, which the data does not", "其中的{said}与数据不符"),
    "number-of": (
        "it says {said} for {name}, which the data does not",
        "其中{name}的{said}与数据不符",
    ),
    "unranked": ("it ranks where nothing was ranked", "做了数据中没有的排名"),
    "both-ends": (
        "it says most and least in one sentence, which cannot be checked",
        "同一句中既说最高又说最低，无法核对",
    ),
    "last-unknown": (
        "it names a last one, and not all groups are known",
        "指出了最后一名，但并非所有分组都已知",
    ),
    "rank": ("it ranks {said} where {name} stands", "把{said}排在了{name}的位置"),
    "nameless-rank": ("it ranks without a name", "排名没有说明是谁"),
    "no-comparison": (
        "it speaks of a change, and nothing was compared",
        "提到了变化，但没有做过比较",
    ),
    "both-ways": (
        "it says up and down in one sentence, which cannot be checked",
        "同一句中既说上升又说下降，无法核对",
    ),
    "no-change": ("it speaks of a change that the data does not show", "提到了数据中没有的变化"),
    "way": ("it has the direction wrong", "变化的方向不对"),
    "way-of": ("it has the direction of {name} wrong", "{name}的变化方向不对"),
    "way-of-total": ("it has the direction of the total wrong", "合计的变化方向不对"),
    "order-unnamed": ("it does not name order {name}", "没有提到订单{name}"),
    "order-number": (
        "it says {said}, which is neither the order's number nor a date",
        "其中的{said}既不是订单号也不是日期",
    ),
    "state-unnamed": ("it does not say that the order is {name}", "没有说明订单的状态是{name}"),
    "other-state": ("it names another state than the order's", "提到的不是该订单的状态"),
    "state": (
        "it says “{said}”, which is not the order's state",
        "其中的“{said}”不是该订单的状态",
    ),
    "not-asked": ("it speaks of {name}, which is not asked", "提到了没有问到的{name}"),
}
"""In English and in Chinese, by kind."""


def objection(kind: str, language: str, *, said: str = "", name: str = "") -> str:
    """Return why a text is not shown.

    Args:
        kind: one of the objections.
        language: `zh` for Chinese, else English.
        said: the words of the text that are objected to.
        name: what the data has to do with them.
    """
    return OBJECTIONS[kind][language == "zh"].format(said=said, name=name)

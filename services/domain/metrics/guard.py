"""Refuses questions that would change data, and recognises SQL that only reads."""

import re
import unicodedata

from services.domain.metrics.errors import ReadOnlyError

_START = (
    r"(?:^|[.;!?,:]\s*|"
    r"\b(?:please|kindly|now|then|and|or|to|you|just|must|should|will|let'?s|let us|also)\s+)"
)
_THINGS = (
    r"(?:table|tables|view|views|column|columns|row|rows|record|records|database|databases|db|schema|"
    r"index|entry|entries|data|dataset|file|files|field|fields|line|lines)"
)
_SQL = re.compile(
    r"\b(?:drop\s+(?:table|view|schema|database|index|column|all\b)|delete\s+from|"
    r"truncate\s+(?:table\s+)?\w|"
    r"insert\s+(?:or\s+\w+\s+)?into|update\s+[\w\".]+\s+set\b|alter\s+(?:table|view|column|database)|"
    r"create\s+(?:or\s+replace\s+)?(?:temp\w*\s+)?"
    r"(?:table|view|schema|database|index|macro|function|trigger)|"
    r"merge\s+into|replace\s+into|attach\s+['\"\w]|detach\s+\w|"
    r"copy\s+[\w\"(].*\b(?:to|from)\b\s*['\"]|"
    r"pragma\s+\w|grant\s+\w+\s+(?:on|to)|revoke\s+\w+\s+(?:on|from)|"
    r"export\s+database|import\s+database|"
    r"vacuum\b|install\s+\w+\s*;|load\s+'\w)",
    re.IGNORECASE | re.DOTALL,
)
_WISHES = (
    re.compile(
        _START + r"(?:delete|erase|truncate|wipe|purge|destroy|remove|drop|clear)\s+"
        r"(?:out\s+|off\s+)?(?:all|every|the|this|these|those|my|our|any|each|some|"
        r"row|record|order|customer|product|table|column|data|"
        rf"everything|entire|#?\d+|{_THINGS}|"
        r"[\w-]+s?\s+(?:table|rows|records|from|where|with|number|#))",
        re.IGNORECASE,
    ),
    re.compile(
        _START + r"(?:update|modify|edit|overwrite|alter|rename|change|set|increase|decrease|raise|"
        r"lower|double|replace|correct|reset)\s+(?:all|every|each|the|this|these|my|our|order|customer|"
        r"product|#?\d+)\b[^.?!]{0,80}?\b(?:to|as|with|by|=)\s*['\"$€£¥]?[\w.]+",
        re.IGNORECASE,
    ),
    re.compile(
        _START + r"(?:insert|add|append|create|put)\s+"
        rf"(?:a |an |one |new |another |some |\d+ )*{_THINGS}\b",
        re.IGNORECASE,
    ),
    re.compile(
        _START + r"(?:insert|add)\s+(?:a |an |one |new |another )+"
        r"(?:order|customer|product|sale)\b",
        re.IGNORECASE,
    ),
)  # fmt: skip
_HAN_WISHES = (
    re.compile(
        r"(?<!被)(?<!已)(?:删除|删掉|删去|清空|清除|抹掉|抹去|销毁)(?!率|数(?!据)|量|的|了多少)"
    ),
    re.compile(
        r"(?:修改|更新|编辑|插入|写入|重命名|篡改|覆盖)(?:一下|一条|一行|所有|全部|这|该|新|掉)*"
        r"(?:表|数据|记录|行|列|字段|订单|客户|产品|商品|价格|状态|金额|数据库)"
    ),
    re.compile(
        r"(?:添加|新增|增加|加入)(?:一|几|两|\d)?(?:条|行|个|列|张)(?:新)?(?:的)?(?:记录|数据|行|列|订单|客户|表|产品)?"
        r"(?!.*(?:多少|最|哪))"
    ),
    re.compile(
        r"[把将].{1,40}?(?:改为|改成|改到|设为|设置为|更新为|更新成|替换为|替换成|变成|调到|调为|删|清空|移除|去掉)"
    ),
    re.compile(r"(?:创建|新建|建立)(?:一|个|张)*(?:新)?(?:的)?(?:表|视图|数据库|数据表)(?!格)"),
)
_QUESTIONING = re.compile(
    r"^(?:which|what|who|when|where|why|how|did|does|do|is|are|was|were|has|have|compare|show|list|tell|give)\b",
    re.IGNORECASE,
)
_SELECT = re.compile(r"^\s*(?:select|with)\b.*\bfrom\b", re.IGNORECASE | re.DOTALL)
_LOOKS_SQL = re.compile(
    r"[*()=;\"]|'[^']*'|\bgroup\s+by\b|\border\s+by\b|\bas\s*\(|\blimit\s+\d", re.IGNORECASE
)
_FENCE = re.compile(r"```(?:sql)?\s*(.*?)```", re.IGNORECASE | re.DOTALL)
_LITERAL = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)


def refuse_writing(question: str) -> None:
    """Raise ReadOnlyError when the question asks to change data, in words or in SQL."""
    text = unicodedata.normalize("NFKC", question).strip()
    bare = _LITERAL.sub(" ", text) if select_in(text) is not None else text
    found = _SQL.search(bare)
    if found is None and select_in(text) is None:
        found = _wish(text)
    if found is not None:
        raise ReadOnlyError(" ".join(found.group().split()).strip(" .;:,!?")[:60])


def select_in(question: str) -> str | None:
    """Return the SQL query that the question is, None when it is plain language.

    It may stand in a code fence. A statement after a semicolon makes it none: the `sql` tool
    would refuse it, and so does the caller.
    """
    fenced = _FENCE.search(question)
    text = (fenced.group(1) if fenced else question).strip()
    if not _SELECT.match(text) or not _LOOKS_SQL.search(text):
        return None
    return text.rstrip("; \n\t")


def _wish(text: str) -> re.Match[str] | None:
    for pattern in _HAN_WISHES:
        if found := pattern.search(text):
            return found
    for pattern in _WISHES:
        for found in pattern.finditer(text):
            # "How did revenue drop the most?" asks, it does not order.
            before = text[: found.start()] + found.group()[:1]
            asks = _QUESTIONING.match(text) and not re.search(r"[.;!?]", before)
            if not asks or found.start() == 0:
                return found
    return None

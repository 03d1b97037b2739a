"""Splits column names of any spelling into words that a lexicon knows."""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from services.domain.metrics.lexicon import vocabulary

_ABBREVIATIONS = {
    "amt": "amount", "amnt": "amount", "qty": "quantity", "qnty": "quantity", "quant": "quantity",
    "cnt": "count", "dt": "date", "dte": "date", "prod": "product", "prd": "product",
    "cat": "category", "catg": "category", "ctgry": "category", "categ": "category",
    "subcat": "subcategory", "cust": "customer", "cstmr": "customer", "clnt": "client",
    "rgn": "region", "reg": "region", "ctry": "country", "cntry": "country", "dept": "department",
    "ord": "order", "num": "number", "nbr": "number", "nr": "number", "no": "number",
    "val": "value", "pct": "percent", "perc": "percent", "rev": "revenue", "mgr": "manager",
    "emp": "employee", "wh": "warehouse", "whs": "warehouse", "pmt": "payment", "mth": "month",
    "mon": "month", "yr": "year", "disc": "discount", "dscnt": "discount", "ret": "return",
    "rtn": "return", "rtrn": "return", "rtnd": "returned", "prc": "price", "descr": "description",
    "desc": "description", "nm": "name", "tot": "total", "ttl": "total", "ship": "shipping",
    "chnl": "channel", "chan": "channel", "seg": "segment", "sls": "sales", "txn": "transaction",
    "trx": "transaction", "trans": "transaction", "inv": "invoice", "acct": "account",
    "itm": "item", "ts": "timestamp", "grp": "group", "typ": "type", "stat": "status",
    "lvl": "level", "terr": "territory", "loc": "location", "splr": "supplier", "vend": "vendor",
    "prov": "province", "cncl": "cancelled", "avg": "average", "inc": "income", "exp": "expense",
}  # fmt: skip
_UNITS = {
    "usd": "USD", "eur": "EUR", "gbp": "GBP", "cny": "CNY", "rmb": "RMB", "jpy": "JPY",
    "hkd": "HKD", "yuan": "yuan", "dollars": "dollars", "euros": "euros", "euro": "EUR",
    "元": "元", "万元": "万元", "美元": "美元", "亿元": "亿元", "千元": "千元", "kg": "kg",
    "件": "件",
    "台": "台", "个": "个", "$": "USD", "€": "EUR", "¥": "元",
}  # fmt: skip
_NOISE = {"name", "title", "label", "description", "text", "sold", "made", "nm"}
_ID_WORDS = {"id", "number", "code", "key", "uuid", "guid", "ref", "identifier"}
_TIME_WORDS = {"date", "time", "month", "year", "day", "week", "quarter", "timestamp", "created",
               "invoice", "transaction", "order", "number", "percent", "average",
               "rate"}  # fmt: skip
_HAN_ID = re.compile(r"(编号|编码|代码|号码|序号|(?<!型)号)$")
_HAN_NAME = re.compile(r"(?<=[\u4e00-\u9fff])(名称|姓名|名)$")
_TOKEN = re.compile(r"[\u3400-\u9fff]+|[a-z]+|\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnName:
    """Holds what a column's name says."""

    words: tuple[str, ...]
    """Lower case, abbreviations spelled out; a run of Chinese is one word."""
    spoken: tuple[str, ...]
    """The words as a person would type them, before abbreviations are spelled out."""
    unit: str
    """The unit that the name carries, as answers print it; empty when none."""
    identifier: bool
    """Whether the name says that values identify a row or a thing."""

    @property
    def head(self) -> str:
        """Return the word that tells what the column is."""
        return self.words[-1] if self.words else ""

    @property
    def modifiers(self) -> tuple[str, ...]:
        """Return the words before the head."""
        return self.words[:-1]


@lru_cache(maxsize=4096)
def parse_name(name: str) -> ColumnName:
    """Split a column's name: snake_case, CamelCase, abbreviations, run-together, Chinese."""
    text, unit = _take_unit(unicodedata.normalize("NFKC", name).strip())
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text).lower()
    spoken = [token for token in _TOKEN.findall(text) if not token.isdigit()]
    words = [word for token in spoken for word in _spell_out(token)]
    if len(words) > 1 and words[-1] in _UNITS:
        unit = unit or _UNITS[words.pop()]
    identifier = False
    while len(words) > 1 and (words[-1] in _NOISE or words[-1] in _ID_WORDS):
        identifier = identifier or words[-1] in _ID_WORDS
        words.pop()
    if words and words[-1] in _ID_WORDS:
        identifier = True
    if words and "\u3400" <= words[-1][0] <= "\u9fff":
        words[-1], is_id = _strip_han(words[-1])
        identifier = identifier or is_id
    return ColumnName(words=tuple(words), spoken=tuple(spoken), unit=unit, identifier=identifier)


def _take_unit(text: str) -> tuple[str, str]:
    """Cut a unit in brackets, or after a slash, off the end of a name."""
    found = re.search(r"[(\[/]\s*([^()\[\]/]{1,12})\s*[)\]]?$", text)
    if found is None or found.start() == 0:
        return text, ""
    inner = found.group(1).strip()
    return text[: found.start()].strip(), _UNITS.get(inner.lower(), inner)


def _spell_out(token: str) -> list[str]:
    if token in _ABBREVIATIONS:
        return [_ABBREVIATIONS[token]]
    if not token.isascii() or len(token) < 6 or token in vocabulary() or token in _TIME_WORDS:
        return [token]
    return _run_together(token) or [token]


def _run_together(token: str) -> list[str]:
    """Split `orderdate` into `order date`, when known words cover it whole."""
    known = vocabulary() | _TIME_WORDS | _NOISE | _ID_WORDS | set(_ABBREVIATIONS) | set(_UNITS)
    best: dict[int, list[str]] = {0: []}
    for end in range(1, len(token) + 1):
        options = [
            [*best[start], token[start:end]]
            for start in range(end)
            if start in best and end - start >= 2 and token[start:end] in known
        ]
        if options:
            best[end] = min(options, key=len)
    found = best.get(len(token), [])
    return [_ABBREVIATIONS.get(word, word) for word in found] if len(found) <= 3 else []


def _strip_han(word: str) -> tuple[str, bool]:
    found = _HAN_ID.search(word)
    if found and found.start() > 0:
        return word[: found.start()], True
    return _HAN_NAME.sub("", word), False

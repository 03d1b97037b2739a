"""Recognises what must not be lost of a text: numbers, dates, money, ids, names, quoted terms.

Every repetition is bounded, so that no text takes more than a time in proportion to its length.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

KINDS = ("link", "id", "date", "money", "name", "number", "quoted")
"""What is told apart; the earlier ones matter more where not all can be kept."""


class Span(NamedTuple):
    """Says where in a text something stands that is to be kept."""

    start: int
    end: int
    kind: str


_BEFORE = r"(?<![A-Za-z0-9])"
_AFTER = r"(?![A-Za-z0-9])"
_GAP = r"[ \u00a0\u202f]?"
_DIGITS = r"\d{1,18}(?:[.,]\d{1,18}){0,6}"
_SIZE = (
    rf"(?:{_GAP}(?:thousand|million|billion|trillion|bn|mn|[kKMB]){_AFTER}"
    rf"|{_GAP}[十百千万亿]{{1,3}})?"
)
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?"
_HAN = "〇零一二三四五六七八九十"

_LINK = (
    r"https?://[^\s<>\"'，。；、（）【】《》“”]{1,200}"
    r"|(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,5}"
)
_DATE = "|".join(
    (
        # 2026-03-14, with a time or without; 2026/3/14, 14.03.2026
        rf"{_BEFORE}\d{{4}}-\d{{2}}-\d{{2}}"
        rf"(?:[T ]{_CLOCK}(?:Z|[+-]\d{{2}}:?\d{{2}})?)?{_AFTER}",
        rf"{_BEFORE}\d{{4}}(?P<iso_sign>[./-])\d{{1,2}}(?P=iso_sign)\d{{1,2}}{_AFTER}",
        rf"{_BEFORE}\d{{1,2}}(?P<sign>[./-])\d{{1,2}}(?P=sign)(?:\d{{4}}|\d{{2}}){_AFTER}",
        # 2026年3月14日, 二〇二六年三月, 3月14日, 2026年第一季度
        rf"(?:\d{{4}}|\d{{2}}|[{_HAN}]{{4}}){_GAP}年(?:{_GAP}(?:\d{{1,2}}|[{_HAN}]{{1,3}}){_GAP}月"
        rf"(?:{_GAP}(?:\d{{1,2}}|[{_HAN}]{{1,3}}){_GAP}[日号])?|第?[一二三四1-4]季度)?",
        rf"(?:\d{{1,2}}|[{_HAN}]{{1,3}}){_GAP}月(?:{_GAP}(?:\d{{1,2}}|[{_HAN}]{{1,3}}){_GAP}[日号])?",
        r"第[一二三四1-4]季度",
        # 3 March 2026, March 3rd, 2026, March 2026, Q1 2026, 14:30, 2 pm
        rf"{_BEFORE}{_DAY}(?: of)? {_MONTH}\b\.?,?(?: \d{{4}}(?![A-Za-z0-9-]))?",
        rf"{_BEFORE}{_MONTH}\.? {_DAY}{_AFTER}(?:,? \d{{4}}(?![A-Za-z0-9-]))?",
        rf"{_BEFORE}{_MONTH}\.? \d{{4}}{_AFTER}",
        rf"{_BEFORE}Q[1-4](?:[ /-]\d{{4}})?{_AFTER}",
        rf"{_BEFORE}{_CLOCK}(?: ?[ap]\.?m\.?)?{_AFTER}",
        rf"{_BEFORE}\d{{1,2}} ?[ap]\.?m\b\.?",
    )
)
_MONEY = (
    rf"(?:US\$|HK\$|[€$¥￥£₹]|{_BEFORE}(?:USD|EUR|CNY|RMB|GBP|JPY)){_GAP}{_DIGITS}{_SIZE}"
    rf"|{_DIGITS}{_SIZE}{_GAP}(?:[€$£¥]|人民币|美元|欧元|英镑|日元|港元|元|块钱"
    rf"|(?:USD|EUR|CNY|RMB|GBP|JPY|yuan|dollars?|euros?|pounds|cents?){_AFTER})"
)
_ID = "|".join(
    (
        rf"{_BEFORE}[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}{_AFTER}",
        r"#\d{2,20}",
        r"(?<![\d+])\+\d{1,3}[ -]?\(?\d{1,4}\)?(?:[ -]?\d{2,4}){1,5}",
        # ORD-2026-00123, A1001, 7f3a9c2e, 12A-99-XY: letters and digits together
        rf"{_BEFORE}(?=[A-Za-z0-9_/-]{{0,40}}\d)[A-Za-z][A-Za-z0-9]{{0,39}}"
        rf"(?:[-_/][A-Za-z0-9]{{1,40}}){{0,8}}{_AFTER}",
        rf"{_BEFORE}(?=[A-Za-z0-9_/-]{{6}})(?=[0-9_/-]{{0,40}}[A-Za-z])\d[A-Za-z0-9]{{0,39}}"
        rf"(?:[-_/][A-Za-z0-9]{{1,40}}){{0,8}}{_AFTER}",
        rf"{_BEFORE}\d{{2,40}}(?:[-_/]\d{{2,40}}){{1,8}}{_AFTER}",
        rf"{_BEFORE}\d{{6,40}}(?![A-Za-z0-9.,]\d)",
    )
)
_UNIT = (
    r"(?:[%‰％°]|km/h|m/s|kWh|MWh|kW|MW|[KMGT]i?B|[kmcnµ]m[²³23]?|m[²³]|[mk]?g|[mµn]?s|ml|Hz|GHz|MHz"
    r"|[hdwlLmV]|°C|°F|tons?|tonnes?|kilos?|hours?|hrs?|minutes?|mins?|seconds?|secs?|days?|weeks?"
    r"|months?|years?|percent|tokens?|units?|pieces?|pcs|items?|orders?|customers?|users?|people"
    rf"|points?|times|rows?|pages?|x){_AFTER}(?![-_/]\w)"
)
_UNIT_HAN = (
    r"(?:个(?:月|小时|星期|工作日)?|人|件|台|次|天|年|周|小时|分钟|秒|毫秒|倍|吨|公斤|千克|克|公里|千米|米|厘米"
    r"|升|度|页|行|条|份|位|名|家|种|项|批|箱|套|辆|户|单|岁|点|折|号|百分点)"
)
_NUMBER = (
    rf"(?<![A-Za-z0-9.,])[-−+±]?{_DIGITS}{_SIZE}(?:[ -]?{_UNIT}|{_GAP}{_UNIT_HAN})"
    rf"|[-−+±]?\d{{1,18}}(?:[.,]\d{{1,18}}){{1,6}}{_SIZE}"
    rf"|[-−+±]?\d{{2,18}}{_SIZE}|百分之[{_HAN}百\d]{{1,6}}"
)
_CAPITALISED = r"[A-ZÀ-ÖØ-Þ][A-Za-zÀ-ɏ'’&]{1,30}(?:-[A-Za-zÀ-ɏ'’&]{1,30}){0,3}(?![A-Za-zÀ-ɏ0-9_/-])"
_NAME = (
    rf"{_BEFORE}{_CAPITALISED}(?: (?:(?:of|de|van|von|der|la|du) )?{_CAPITALISED}){{1,5}}"
    rf"|(?<=[a-z,;] ){_CAPITALISED}"
    rf"|(?<![A-Za-z]){_CAPITALISED}(?= ?[\u4e00-\u9fff])|(?<=[\u4e00-\u9fff])[A-Z][A-Za-z]{{1,30}}"
)
_QUOTED = (
    r"“[^“”\n]{1,60}”|「[^「」\n]{1,60}」|『[^『』\n]{1,60}』|《[^《》\n]{1,60}》|‘[^‘’\n]{1,60}’"
    r"|`[^`\n]{1,60}`|(?<![A-Za-z0-9])\"(?=[^\s\"])[^\"\n]{1,60}(?<=\S)\"(?![A-Za-z0-9])"
)

_AFTER_QUOTES = (
    rf"(?P<date>{_DATE})|(?P<money>{_MONEY})|(?P<measure>(?<![A-Za-z0-9.,/-]){_DIGITS}[ -]?{_UNIT})"
    rf"|(?P<id>{_ID})|(?P<number>{_NUMBER})|(?P<name>{_NAME})"
)
# Plain words, by far most of a text, are taken first: the others need not be tried at each letter.
_PLAIN = (
    rf"{_BEFORE}(?:[a-z]{{1,40}}[ \n]){{1,50}}"
    rf"|(?:(?![{_HAN}百第])[\u4e00-\u9fff，。；]){{1,100}}"
)
_PROSE = re.compile(rf"(?P<plain>{_PLAIN})|(?P<link>{_LINK})|(?P<quoted>{_QUOTED})|{_AFTER_QUOTES}")
_DATA = re.compile(rf"(?P<plain>{_PLAIN})|(?P<link>{_LINK})|{_AFTER_QUOTES}")
"""For tools' results: in JSON every key is quoted."""
_COMMON_STARTS = re.compile(
    r"(?:(?:The|This|That|These|Those|There|Here|An?|In|On|At|For|From|To|By|With|Of|And|But|Or|So"
    r"|If|When|What|Which|Who|Why|How|Where|We|You|They|He|She|It|My|Our|Your|Their|His|Her|Its|Is"
    r"|Are|Was|Were|Do|Does|Did|Can|Could|Would|Should|Will|May|Please|Yes|No|Not|Thanks|Thank"
    r"|Hello|Hi|Dear|Also|Then|After|Before|Let|Show|Tell|Give|Now|As)(?: |$))+"
)
_KIND = {"measure": "number"}


def find(text: str, *, data: bool = False) -> Iterator[Span]:
    """Yield what a text has to be kept for, in its order and without overlaps.

    Args:
        text: the text; Chinese names are not found here, for they show by no character.
        data: the text is a tool's, such as JSON, in which quotes mean nothing.
    """
    for match in (_DATA if data else _PROSE).finditer(text):
        group = match.lastgroup or ""
        if group == "plain":
            continue
        start, end = match.span()
        if group == "name":
            common = _COMMON_STARTS.match(match.group())
            start += common.end() if common else 0
        elif group == "link":
            end = start + len(match.group().rstrip(".,;:!?)"))
        if start < end:
            yield Span(start, end, _KIND.get(group, group))

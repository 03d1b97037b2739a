"""Finds keywords by counting, with no library and for any installation."""

import re
from collections import Counter
from collections.abc import Callable, Iterable

_WORD = re.compile(r"[A-Za-zÀ-ɏ][A-Za-z0-9À-ɏ'’-]{1,39}")
_HAN_RUN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]{2,60}")
_MAX_HAN_WORD = 4
_STOPWORDS = frozenset(
    """
    a about above after again all also am an and any are aren't as at be because been before being
    below between both but by can can't cannot could did didn't do does doesn't doing don't down
    during each few first for from further get give go got had has hasn't have haven't having he
    hello her here hers him his how i i'm if in into is isn't it it's its just know last let let's
    like made make many may me more most much must my need new no nor not now of off ok okay on
    once one only or other our out over own please said same see she should show so some such take
    tell than thank thanks that that's the their them then there these they this those through to
    too two under until up us use very want was wasn't we were what what's when where which while
    who whom why will with within without won't would yes yet you you're your
    """.split()
)
_HAN_STOPWORDS = frozenset(
    "的了是在我你他她它们这那和与及或也都就还又很不没有被把从到对为以而但并个其之所吗呢吧啊请会能可要说上下中等着"
    "过得地一二三两几多少每各该此如若因由于什么怎样谁哪啥给让跟再已将最更您"
)


def english(text: str, max_count: int) -> list[str]:
    """Return the words and pairs of words that stand in a text most often, best first."""
    counts: Counter[str] = Counter()
    spelled: dict[str, str] = {}
    previous = ""
    end_of_previous = -1
    for match in _WORD.finditer(text):
        word = match.group().lower()
        if word in _STOPWORDS:
            previous = ""
            continue
        spelled.setdefault(word, match.group())
        counts[word] += 1
        if previous and match.start() == end_of_previous + 1:
            pair = f"{previous} {word}"
            spelled.setdefault(pair, f"{spelled[previous]} {match.group()}")
            # Two words that stand together twice say more than each of them.
            counts[pair] += 1
        previous, end_of_previous = word, match.end()
    return [spelled[word] for word in _best(counts, max_count, weight=_english_weight)]


def chinese(text: str, max_count: int) -> list[str]:
    """Return the runs of two to four characters that stand in a text most often, best first."""
    counts: Counter[str] = Counter()
    for match in _HAN_RUN.finditer(text):
        run = match.group()
        for length in range(2, _MAX_HAN_WORD + 1):
            for start in range(len(run) - length + 1):
                piece = run[start : start + length]
                if not _HAN_STOPWORDS.intersection(piece):
                    counts[piece] += 1
    repeated = Counter({piece: count for piece, count in counts.items() if count > 1})
    return _best(repeated, max_count, weight=lambda piece, count: count * (len(piece) - 1))


def most_frequent(words: Iterable[str], max_count: int) -> list[str]:
    """Return the words that come most often, best first; of equals the first to come."""
    return [word for word, _ in Counter(words).most_common(max_count)]


def _english_weight(term: str, count: int) -> float:
    if " " in term:
        return 2.5 * count if count > 1 else 0.9
    return count + min(len(term), 12) / 20


def _best(
    counts: Counter[str], max_count: int, *, weight: Callable[[str, int], float]
) -> list[str]:
    ranked = sorted(counts, key=lambda term: (-weight(term, counts[term]), term))
    best: list[str] = []
    for term in ranked[: max_count * 8]:
        if len(best) == max_count:
            break
        if not any(_covers(chosen, term, counts) for chosen in best):
            best.append(term)
    return best


def _covers(chosen: str, term: str, counts: Counter[str]) -> bool:
    """Return whether a term tells little beyond one that was chosen."""
    if term in chosen:
        return counts[term] <= 2 * counts[chosen]
    return chosen in term

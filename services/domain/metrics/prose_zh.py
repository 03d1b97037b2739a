"""Writes a Chinese answer from facts."""

from services.domain.metrics.comparing import adds_up, as_low, other_way, same_way, whole_steps
from services.domain.metrics.facts import Facts
from services.domain.metrics.numbers import (
    change_text,
    percent_text,
    signed_percent_text,
)
from services.domain.metrics.query import (
    Intent,
    OrderBy,
)
from services.domain.metrics.words_zh import (
    change_of,
    share_of,
    signed_change,
    some,
    thing,
    value_of,
    when,
    whose,
)

_NAMED = 3


def headline(facts: Facts) -> str:
    """Return the sentence that answers the question."""
    match facts.query.intent:
        case Intent.TOTAL:
            return _total(facts)
        case Intent.GROWTH:
            return _growth(facts)
        case Intent.TREND:
            return _trend(facts)
        case Intent.SHARE:
            return _share(facts)
        case Intent.COMPARE if len(facts.groups) == 2:
            return _compare(facts)
        case Intent.COMPARE | Intent.BREAKDOWN:
            return _breakdown(facts)
        case _:
            return _rank(facts)


def support(facts: Facts) -> list[str]:
    """Return the sentences that stand behind it."""
    match facts.query.intent:
        case Intent.TOTAL:
            return [f"依据{facts.total.row_count:,}行数据计算。"]
        case Intent.GROWTH:
            return _growth_support(facts)
        case Intent.TREND:
            return _trend_support(facts)
        case _:
            return _rank_support(facts)


def nothing(facts: Facts) -> str:
    """Say that no row matched."""
    coverage = facts.query.coverage
    limit = facts.query.group_limit
    if limit is not None and facts.query.dimension is not None:
        what = f"{facts.query.measure.label}{limit.operator}{limit.limit:,g}"
        return f"{when(facts.query)}没有{what}的{facts.query.dimension.label}。"
    runs = (
        f"数据范围为{coverage.first.isoformat()}至{coverage.last.isoformat()}。" if coverage else ""
    )
    return f"{when(facts.query)}{whose(facts.query)}没有符合条件的数据。{runs}"


def title(facts: Facts) -> str:
    """Return a title for the chart and the report."""
    query = facts.query
    by = f"各{query.dimension.label}" if query.dimension else ""
    when = query.period.name("zh") if query.period else ""
    return f"{when}{by}{query.measure.label}"


def _total(facts: Facts) -> str:
    query, total = facts.query, facts.total
    subject = f"{when(query)}{whose(query)}{query.measure.label}"
    value = value_of(facts, total.value)
    if query.comparison is None:
        return f"{subject}为{value}。"
    before = f"{query.comparison.full_name('zh')}为{value_of(facts, total.previous)}"
    if total.change is None:
        return f"{subject}为{value}；{before}。"
    if total.change == 0:
        return f"{subject}为{value}，与{query.comparison.full_name('zh')}持平。"
    verb = "增加" if total.change > 0 else "减少"
    return f"{subject}为{value}，{before}，{verb}了{change_of(facts, total)}。"


def _rank(facts: Facts) -> str:
    query, first = facts.query, facts.headline
    names = [first.name, *(group.name for group in facts.ties)]
    most = "最高" if query.descending else "最低"
    value = value_of(facts, first.value)
    where = f"{when(query)}{whose(query)}"
    if len(names) > 1:
        return f"{where}{some(names)}的{query.measure.label}并列{most}，均为{value}。"
    share = f"，占总体的{percent_text(first.share)}" if first.share is not None else ""
    return f"{where}{first.name}的{query.measure.label}{most}，为{value}{share}。"


def _breakdown(facts: Facts) -> str:
    query = facts.query
    shown = "、".join(f"{g.name} {value_of(facts, g.value)}" for g in facts.shown)
    return f"{when(query)}{whose(query)}各{thing(query)}的{query.measure.label}：{shown}。"


def _compare(facts: Facts) -> str:
    query, one, two = facts.query, facts.groups[0], facts.groups[1]
    if one.value is None or two.value is None:
        return _rank(facts)
    gap = one.value - two.value
    label = query.measure.label
    if gap == 0:
        value = value_of(facts, one.value)
        return f"{when(query)}{one.name}与{two.name}的{label}相同，均为{value}。"
    more = "高于" if gap > 0 else "低于"
    ratio = f"（{signed_percent_text(gap / abs(two.value))}）" if two.value else ""
    return (
        f"{when(query)}{one.name}的{label}{more}{two.name}："
        f"{value_of(facts, one.value)}对{value_of(facts, two.value)}，"
        f"相差{change_text(query.measure, gap, 'zh')}{ratio}。"
    )


def _share(facts: Facts) -> str:
    query, first = facts.query, facts.headline
    label = query.measure.label
    whole = value_of(facts, facts.total.value)
    where = f"{when(query)}{whose(query)}"
    focus = [g for g in facts.groups if g.name in query.focus]
    if len(focus) > 1:
        shown = "、".join(f"{g.name} {share_of(g)}（{value_of(facts, g.value)}）" for g in focus)
        return f"{where}{label}占比：{shown}，总计{whole}。"
    if first.share is None:
        return _rank(facts)
    value = value_of(facts, first.value)
    return f"{where}{first.name}占{label}的{percent_text(first.share)}：{value}，总计{whole}。"


def _growth(facts: Facts) -> str:
    query, first = facts.query, facts.headline
    if not facts.groups or first.change is None or query.comparison is None:
        return _rank(facts)
    label, up, falling = query.measure.label, query.descending, first.change < 0
    where = f"{when(query)}{whose(query)}"
    before = f"{query.comparison.full_name('zh')}为{value_of(facts, first.previous)}"
    now = f"{label}为{value_of(facts, first.value)}，{before}"
    if first.change == 0:
        return f"{where}没有{thing(query)}的{label}发生变化：{now}。"
    verb = "减少" if falling else "增加"
    by = f"{verb}了{change_of(facts, first)}"
    names = [first.name, *(group.name for group in facts.ties)]
    if len(names) > 1:
        return f"{where}{some(names)}的变化并列：{label}均{by}。"
    if falling == up:
        kind, least = ("增长", "降幅最小") if up else ("下降", "增幅最小")
        return f"{where}没有{thing(query)}{kind}；{first.name}{least}：{now}，{by}。"
    fast = query.order_by is OrderBy.CHANGE_RATIO
    most = ("增长最快" if fast else "增长最多") if up else ("下降最快" if fast else "下降最多")
    return f"{where}{first.name}{most}：{now}，{by}。"


def _growth_support(facts: Facts) -> list[str]:
    query = facts.query
    said = []
    others = [g for g in facts.groups[1:_NAMED] if same_way(facts.headline, g)]
    if others:
        said.append(
            f"其次是{'、'.join(f'{g.name}（{signed_change(facts, g)}）' for g in others)}。"
        )
    other = other_way(facts)
    if other is not None and other.change_ratio is not None:
        if query.order_by is OrderBy.CHANGE:
            said.append(
                f"按百分比，{other.name}变化最大：{signed_percent_text(other.change_ratio)}。"
            )
        else:
            said.append(f"按绝对值，{other.name}变化最大：{signed_change(facts, other)}。")
    new = [g.name for g in facts.groups if g.new]
    if new:
        said.append(f"新出现（之前没有{query.measure.label}）：{'、'.join(new[:5])}。")
    total = facts.total
    if total.change is not None:
        verb = "增加" if total.change > 0 else "减少" if total.change < 0 else "持平"
        by = f"了{change_of(facts, total)}" if total.change else ""
        said.append(f"总体{query.measure.label}{verb}{by}，为{value_of(facts, total.value)}。")
    return said + _unnamed(facts)


def _trend(facts: Facts) -> str:
    query = facts.query
    if not facts.groups:
        return nothing(facts)
    if query.ranked:
        return _best_step(facts)
    whole = whole_steps(facts)
    first, last = whole[0], whole[-1]
    label = f"{whose(query)}{query.measure.label}"
    if len(whole) == 1:
        return f"{first.name}{label}为{value_of(facts, first.value)}，没有其他完整的时间段可比。"
    text = (
        f"{label}从{first.name}的{value_of(facts, first.value)}"
        f"变为{last.name}的{value_of(facts, last.value)}"
    )
    if first.value and last.value is not None:
        text += f"（{signed_percent_text((last.value - first.value) / abs(first.value))}）"
    return f"{text}。"


def _best_step(facts: Facts) -> str:
    query = facts.query
    scored = [g for g in facts.groups if g.change is not None and not g.partial]
    if not scored:
        return nothing(facts)
    pick = max if query.descending else min
    best = pick(scored, key=lambda group: group.change or 0.0)
    verb = "增加" if (best.change or 0) > 0 else "减少"
    return (
        f"{best.name}变化最大：{whose(query)}{query.measure.label}由前一{thing(query)}的"
        f"{value_of(facts, best.previous)}变为{value_of(facts, best.value)}，"
        f"{verb}了{change_of(facts, best)}。"
    )


def _trend_support(facts: Facts) -> list[str]:
    known = [g for g in whole_steps(facts) if g.value is not None]
    said = []
    if len(known) > 2:
        high = max(known, key=lambda group: group.value or 0.0)
        low = min(known, key=lambda group: group.value or 0.0)
        said.append(
            f"最高为{high.name}（{value_of(facts, high.value)}），"
            f"最低为{low.name}（{value_of(facts, low.value)}）。"
        )
    if facts.query.measure.additive:
        said.append(f"{len(facts.groups)}个时间段合计{value_of(facts, facts.total.value)}。")
    return said + _cut_steps(facts)


def _cut_steps(facts: Facts) -> list[str]:
    cut = [group for group in facts.groups if group.partial]
    if not cut:
        return []
    return [f"不完整：{'、'.join(f'{g.name}（{value_of(facts, g.value)}）' for g in cut[:3])}。"]


def _rank_support(facts: Facts) -> list[str]:
    query = facts.query
    said = []
    ranked = query.intent in (Intent.RANK, Intent.SHARE)
    others = [g for g in facts.shown if g is not facts.headline and g not in facts.ties]
    limit = max(_NAMED - 1, query.limit - 1 if query.limit < 10 else 0)
    limit = 5 if query.intent is Intent.SHARE else limit
    if ranked and others:
        listed = "、".join(f"{g.name}（{value_of(facts, g.value)}）" for g in others[:limit])
        said.append(f"{'其次是' if query.intent is Intent.RANK else '其他：'}{listed}。")
    if query.intent is Intent.RANK and facts.complete and len(facts.groups) > limit + 1:
        last = next((g for g in reversed(facts.groups) if not g.partial), facts.groups[-1])
        least = "最低" if query.descending else "最高"
        same = as_low(facts, last)
        who = last.name if len(same) == 1 else f"{len(same)}个{thing(query)}"
        said.append(f"{least}的是{who}，为{value_of(facts, last.value)}。")
    if facts.group_count > 1 and facts.named_total is not None and adds_up(query):
        whole = value_of(facts, facts.named_total)
        joint = "合计" if query.measure.additive else "总体为"
        said.append(f"全部{facts.group_count:,}个{thing(query)}{joint}{whole}。")
    return said + _unnamed(facts) + _cut_steps(facts)


def _unnamed(facts: Facts) -> list[str]:
    if not facts.unnamed_count or facts.query.dimension is None:
        return []
    return [f"有{facts.unnamed_count:,}行没有{facts.query.dimension.label}，不属于任何分组。"]

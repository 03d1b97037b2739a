"""Chooses the number that a question asks for."""

import re
from dataclasses import replace

from services.domain.metrics.formulas import Formulas, missing_column, plural, step_label
from services.domain.metrics.lexicon import Concept, Kind, concepts
from services.domain.metrics.mentions import Mention
from services.domain.metrics.query import (
    Aggregation,
    DistinctCount,
    Fold,
    Measure,
    Rate,
    Simple,
    StepCount,
    Unit,
)
from services.domain.metrics.reading import Reading, beside, follows
from services.domain.metrics.roles import Role
from services.domain.metrics.text import has_han


class Measuring:
    """Chooses the measure of one reading, and says what it assumed."""

    def __init__(self, reading: Reading) -> None:
        """Take the reading."""
        self._reading = reading
        self._catalog = reading.catalog
        self._zh = reading.language == "zh"
        self._formulas = Formulas(reading)
        self.notes = self._formulas.notes
        """What was assumed, in the language of the answer."""
        self.used: list[Mention] = []
        """The mentions that became the measure, and filter nothing."""

    def choose(self) -> Measure:
        """Return the measure: the one that is named, else the table's main number."""
        return (
            self._derived()
            or self._rate()
            or self._counted()
            or self._per_thing()
            or self._named()
            or self._orders()
            or self._frequent()
            or self._flagged()
            or self._sold()
            or self._assumed()
        )

    # Each of the following returns None when the question does not ask for its kind.

    def _derived(self) -> Measure | None:
        for mention in self._reading.of_kind(Kind.DERIVED):
            concept = mention.concept
            if concept is None or concept.key == "orders":
                continue
            self.used.append(mention)
            label = concept.label(self._reading.language)
            revenue = self._formulas.require("revenue", mention)
            if concept.key == "order_value":
                return self._formulas.quotient(revenue, self._formulas.order_count(), label)
            if concept.key == "per_customer":
                customer = self._formulas.thing("customer", mention)
                return self._formulas.quotient(revenue, DistinctCount(customer), label)
            measure = self._formulas.quotient(
                self._formulas.require("profit", mention), revenue, label
            )
            return replace(measure, unit=Unit.RATIO, suffix="")
        return None

    def _rate(self) -> Measure | None:
        """Read `return rate`, `share of returned orders`, 退货率: part of rows marked yes."""
        if "rate" not in self._reading.cues:
            return None
        for mention in self._reading.mentions:
            role = mention.role
            if mention.value or not self._about_flag(mention):
                continue
            near = follows(self._reading, mention, "rate") or not self._other_measure(mention)
            if not near:
                continue
            self.used.append(mention)
            label = self._rate_label(mention)
            if role is None or role.flag is None:
                return self._formulas.rate_of_amounts(mention, label)
            expression = Rate(role.column.name, role.flag)
            return Measure(expression=expression, label=label, unit=Unit.RATIO)
        return None

    def _counted(self) -> Measure | None:
        """Read `how many orders`, `number of customers`, 多少个客户."""
        for mention in self._reading.of_kind(Kind.DERIVED):
            orders = mention.concept is not None and mention.concept.key == "orders"
            if orders and re.search(r"number|count|数|量", mention.said.lower()):
                self.used.append(mention)
                return self._formulas.orders_measure()
        if "count" not in self._reading.cues:
            return None
        for mention in self._reading.mentions:
            if mention.value or not beside(self._reading, mention, "count"):
                continue
            self.used.append(mention)
            return self._count_of(mention)
        return None

    def _count_of(self, mention: Mention) -> Measure | None:
        concept, role = mention.concept, mention.role
        if concept is not None and concept.key == "quantity" and role is not None:
            return self._formulas.folded(role, mention)
        is_orders = concept is not None and concept.key in ("orders", "revenue")
        if is_orders or role is None or self._about_flag(mention):
            if self._about_flag(mention):
                self.used.remove(mention)
            return self._formulas.orders_measure()
        if role.measurable and not role.groupable:
            return self._formulas.folded(role, mention)
        label = role.label(self._reading.language, mention.said)
        named = f"{label}数" if self._zh else f"number of {plural(label)}"
        return Measure(expression=DistinctCount(role.column.name), label=named, unit=Unit.COUNT)

    def _per_thing(self) -> Measure | None:
        """Read `average revenue per customer`, `average monthly sales`, 日均销售额."""
        reading = self._reading
        if "average" not in reading.cues and not self._per_order():
            return None
        measure = self._explicit()
        if measure is None or measure.role is None:
            return None
        over = self._sum_of(measure.role)
        if over is None:
            return None
        label = measure.role.label(reading.language, measure.said)
        grain = reading.cues.grain
        if grain is not None and reading.catalog.axes:
            name = step_label(label, grain.value, zh=self._zh)
            self.used.append(measure)
            return self._formulas.quotient(over, StepCount(grain), name, measure.role)
        for mention in reading.mentions:
            if not beside(reading, mention, "breakdown") or mention.value:
                continue
            key = mention.concept.key if mention.concept else ""
            if key == "orders":
                under: Simple = self._formulas.order_count()
            elif key == "customer" and mention.role is not None:
                under = DistinctCount(mention.role.column.name)
            else:
                continue
            self.used += [measure, mention]
            name = (
                f"每{mention.said}平均{label}"
                if self._zh
                else f"average {label} per {mention.said}"
            )
            return self._formulas.quotient(over, under, name, measure.role)
        return None

    def _per_order(self) -> bool:
        """Tell `units per order` and 每单件数, which nobody wants as a list of orders."""
        return bool(
            self._reading.text.find("per order")
            or self._reading.text.find("每单")
            or self._reading.text.find("每笔订单")
        )

    def _explicit(self) -> Mention | None:
        """Return the measure that is named by a word that means nothing else."""
        found = [
            mention
            for mention in self._reading.mentions
            if not mention.value and self._measures(mention)
        ]
        strong = [mention for mention in found if not mention.weak]
        return next(iter(strong), None)

    def _named(self) -> Measure | None:
        mention = self._explicit()
        if mention is None:
            return None
        others = [
            other
            for other in self._reading.mentions
            if other is not mention and self._measures(other) and not other.weak
            and other.said.lower() != mention.said.lower()
            and (other.concept is None or other.concept is not mention.concept)
        ]  # fmt: skip
        if others:
            self._say_left_out(others[0])
        self.used.append(mention)
        self.used += others
        return self._of_mention(mention)

    def _of_mention(self, mention: Mention) -> Measure:
        if mention.role is not None:
            return self._formulas.folded(mention.role, mention)
        return self._without_column(mention)

    def _without_column(self, mention: Mention) -> Measure:
        """Make revenue or profit from the columns that are there, or say what is missing."""
        concept = mention.concept
        if concept is not None and concept.key in ("revenue", "profit"):
            made = self._formulas.made(concept.key)
            if made is not None:
                return Measure(expression=made, label=concept.label(self._reading.language))
        raise missing_column(self._reading, mention.said)

    def _orders(self) -> Measure | None:
        for mention in self._reading.of_kind(Kind.DERIVED):
            if mention.concept and mention.concept.key == "orders" and self._counts(mention):
                self.used.append(mention)
                return self._formulas.orders_measure()
        order = self._catalog.order_id()
        for mention in self._reading.mentions:
            # A table of tickets or visits is counted by the word that its own id carries.
            own = order is not None and mention.role is order and not mention.value
            own = own and not mention.weak
            if own and not beside(self._reading, mention, "which"):
                self.used.append(mention)
                return self._formulas.orders_measure(mention.said)
        return None

    def _counts(self, mention: Mention) -> bool:
        """Tell `most orders` from `the largest order`, which is about its amount."""
        if "single" in self._reading.cues and self._reading.cues.superlative:
            return False
        if mention.said.lower() in ("order", "transaction", "purchase", "deal"):
            return not self._reading.cues.superlative
        before = self._reading.text.lower[: mention.span.start]
        return not re.search(r"最[大高贵小低](?:金额)?的?[一这那]?[笔个单张]*$", before)

    def _frequent(self) -> Measure | None:
        """Read `the most common reason` as the one with the most rows."""
        return self._formulas.orders_measure() if "frequent" in self._reading.cues else None

    def _flagged(self) -> Measure | None:
        """Read `which category has the most returns`: count the rows marked yes."""
        if not any(self._about_flag(m) and m.role for m in self._reading.mentions):
            return None
        revenue = self._catalog.measure("revenue")
        if revenue is not None and self._asks_much():
            return self._formulas.folded(revenue, None)
        return self._formulas.orders_measure()

    def _asks_much(self) -> bool:
        """Tell `how much was refunded`, an amount, from `how many`."""
        return bool(self._reading.text.find("how much") or self._reading.text.find("多少钱"))

    def _sold(self) -> Measure | None:
        """Read `what sold best` as units, when there are units."""
        role = self._catalog.measure("quantity")
        if "sold" not in self._reading.cues or role is None:
            return None
        if self._asks_much() and self._catalog.measure("revenue") is not None:
            return None
        self._assume(role, "sold")
        return self._formulas.folded(role, None)

    def _assumed(self) -> Measure:
        """Take the main number of the table, when the question names none."""
        weak = [m for m in self._reading.mentions if self._measures(m) and m.role is not None]
        if weak:
            self.used.append(weak[0])
            return self._of_mention(weak[0])
        made = None if self._catalog.measure("revenue") else self._formulas.made("revenue")
        if made is not None:
            return Measure(
                expression=made, label=concepts()["revenue"].label(self._reading.language)
            )
        found = self._catalog.measures()
        if not found:
            self.notes.append(
                self._reading.pick(
                    en="The data has no column of amounts, so rows are counted.",
                    zh="数据中没有数值列，因此按行数统计。",
                )
            )
            return self._formulas.orders_measure()
        self._assume(found[0], "")
        return self._formulas.folded(found[0], None)

    # What the above are made of.

    def _measures(self, mention: Mention) -> bool:
        if mention.kind is Kind.MEASURE:
            return mention.role is None or mention.role.measurable
        return (
            mention.role is not None
            and mention.concept is None
            and mention.role.measurable
            and not mention.value
            and mention.role.flag is None
        )

    def _other_measure(self, mention: Mention) -> bool:
        return any(
            self._measures(other) and other is not mention for other in self._reading.mentions
        )

    def _about_flag(self, mention: Mention) -> bool:
        if mention.value:
            return False
        if mention.kind is Kind.FLAG:
            return True
        return mention.role is not None and mention.role.flag is not None

    def _sum_of(self, role: Role) -> Fold | None:
        """Return the sum of a column, None when a sum would mean nothing."""
        return None if role.averaged else Fold(Aggregation.SUM, role.column.name)

    def _rate_label(self, mention: Mention) -> str:
        """Return the name of the part of rows that are marked yes."""
        if self._zh and has_han(mention.said):
            return f"{mention.said}率"
        concept: Concept | None = mention.concept
        word = concept.label(self._reading.language) if concept else mention.said
        return f"{word}率" if self._zh else f"{word} rate"

    def _assume(self, role: Role, word: str) -> None:
        """Note which column was taken."""
        name = role.column.name
        if word:
            en = f"“{word}” is measured by the column {name}."
            zh = f"“卖得”按列 {name} 衡量。"
        else:
            en = f"The question names no measure; {name} is used."
            zh = f"问题没有指明指标，按 {name} 计算。"
        self.notes.append(self._reading.pick(en=en, zh=zh))

    def _say_left_out(self, mention: Mention) -> None:
        """Note that a second measure is not answered."""
        self.notes.append(
            self._reading.pick(
                en=f"One measure is answered at a time; ask again for “{mention.said}”.",
                zh=f"一次回答一个指标；“{mention.said}”请另行提问。",
            )
        )

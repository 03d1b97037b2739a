"""Makes the sample data: one year of orders of the made-up shop Fernhill.

    python scripts/make_sample.py

The same seed gives the same bytes on every Python: only `Random.random()` is used, whose sequence
is part of Python's promise.

What a question can find in it: sales peak in November and December, and Garden in spring;
Electronics grows most over the last quarters; the West returns far more than the other regions,
mostly because of damage in transit; the Classic Desk Lamp declines all year.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from random import Random

SEED = 20251101
FIRST_DAY = date(2025, 11, 1)
LAST_DAY = date(2026, 10, 31)
ORDERS_PER_DAY = 10.4
TARGET = Path(__file__).parents[1] / "services" / "tool" / "data" / "orders.csv"

COLUMNS = (
    "order_id",
    "order_date",
    "customer",
    "region",
    "category",
    "product",
    "quantity",
    "unit_price",
    "revenue",
    "status",
    "returned",
    "return_reason",
    "expected_delivery",
)
REGIONS = {"North": 1.0, "South": 0.85, "East": 1.2, "West": 0.95, "Central": 0.7}
CATALOG = {
    "Electronics": {
        "Wireless Earbuds": 59.9,
        "Smart Speaker": 89.0,
        "Fitness Watch": 129.0,
        "Power Bank": 34.5,
    },
    "Kitchen": {
        "Cast Iron Pan": 44.9,
        "Pour-Over Kettle": 39.5,
        "Chef Knife": 54.0,
        "Glass Storage Set": 29.9,
    },
    "Outdoor": {
        "Rain Jacket": 98.0,
        "Trail Backpack": 84.5,
        "Hiking Boots": 119.0,
        "Camping Stove": 49.9,
    },
    "Office": {
        "Classic Desk Lamp": 42.0,
        "Ergonomic Chair": 189.0,
        "Monitor Stand": 36.9,
        "Notebook Set": 14.5,
    },
    "Garden": {
        "Raised Planter": 64.0,
        "Hose Reel": 52.5,
        "Pruning Shears": 24.9,
        "Solar Path Lights": 33.0,
    },
    "Toys": {
        "Building Blocks": 39.0,
        "Wooden Train": 47.5,
        "Puzzle 1000": 18.9,
        "Plush Fox": 22.0,
    },
}
# Months from November to October.
SEASONS = {
    "Electronics": (1.05, 1.15, 0.70, 0.68, 0.70, 0.72, 0.74, 0.78, 1.25, 1.55, 1.80, 2.00),
    "Kitchen": (1.20, 1.35, 0.85, 0.85, 0.90, 0.90, 0.92, 0.90, 0.92, 0.90, 0.92, 0.95),
    "Outdoor": (0.80, 0.85, 0.65, 0.70, 0.95, 1.10, 1.20, 1.25, 1.20, 1.10, 1.05, 0.90),
    "Office": (0.95, 0.90, 1.10, 0.95, 0.95, 0.95, 0.95, 0.92, 0.85, 0.80, 0.78, 0.75),
    "Garden": (0.30, 0.25, 0.30, 0.50, 1.05, 1.50, 1.60, 1.45, 1.00, 0.80, 0.60, 0.40),
    "Toys": (1.45, 2.10, 0.55, 0.60, 0.65, 0.70, 0.70, 0.75, 0.70, 0.70, 0.70, 0.80),
}
DECLINING_PRODUCT = "Classic Desk Lamp"
RETURN_RATES = {"North": 0.045, "South": 0.05, "East": 0.04, "West": 0.15, "Central": 0.055}
REASONS = {
    "changed my mind": 1.0,
    "not as described": 0.9,
    "arrived late": 0.6,
    "damaged in transit": 0.7,
    "defective": 0.6,
}
WEST_REASONS = REASONS | {"damaged in transit": 5.0}
FIRST_NAMES = (
    "Ana Ben Clara David Elena Felix Grace Hugo Ines Jonas Kira Liam Mei Noah Olivia Pavel Quinn "
    "Rosa Samir Tara Uma Victor Wei Ximena Yusuf Zoe"
).split()
LAST_NAMES = (
    "Adler Brandt Chen Dimitrov Evans Fischer Garcia Hansen Ivanov Jensen Kaya Lindqvist Moreau "
    "Nakamura Okafor Petrov Rossi Santos Tanaka Weber"
).split()
COMPANIES = ("Harbor Hotels", "Lakeside School", "Studio Nine", "Brightwork Offices", "Cafe Linden")


@dataclass(frozen=True, slots=True)
class Chooser:
    """Draws from weighted choices with one seeded source."""

    rng: Random
    """The only source of chance."""

    def pick(self, weights: dict[str, float]) -> str:
        """Returns a key, each as often as its weight says."""
        left = self.rng.random() * sum(weights.values())
        for key, weight in weights.items():
            left -= weight
            if left < 0:
                return key
        return next(reversed(weights))

    def among(self, values: Sequence[str]) -> str:
        """Returns one of the values, all alike."""
        return values[int(self.rng.random() * len(values))]

    def whole(self, first: int, last: int) -> int:
        """Returns a whole number from first to last."""
        return first + int(self.rng.random() * (last - first + 1))

    def happens(self, ratio: float) -> bool:
        """Returns True as often as the ratio says."""
        return self.rng.random() < ratio


def make() -> str:
    """Returns the whole CSV text."""
    chooser = Chooser(Random(SEED))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    number = 10001
    day = FIRST_DAY
    while day <= LAST_DAY:
        for _ in range(_order_count(chooser, day)):
            writer.writerow(_order(chooser, number, day))
            number += 1
        day += timedelta(days=1)
    return text.getvalue()


def _order_count(chooser: Chooser, day: date) -> int:
    weekend = 1.2 if day.weekday() >= 5 else 0.95
    expected = ORDERS_PER_DAY * weekend * sum(_season(day).values()) / len(CATALOG)
    return int(expected * (0.75 + 0.5 * chooser.rng.random()) + chooser.rng.random())


def _season(day: date) -> dict[str, float]:
    month = (day.month - FIRST_DAY.month) % 12
    return {category: weights[month] for category, weights in SEASONS.items()}


def _order(chooser: Chooser, number: int, day: date) -> list[str]:
    region = chooser.pick(REGIONS)
    category = chooser.pick(_season(day))
    product = chooser.pick(_product_weights(category, day))
    company = chooser.happens(0.06)
    customer = (
        chooser.among(COMPANIES)
        if company
        else f"{chooser.among(FIRST_NAMES)} {chooser.among(LAST_NAMES)}"
    )
    quantity = (
        chooser.whole(3, 12) if company else chooser.pick({"1": 6, "2": 2.5, "3": 1, "4": 0.5})
    )
    # The November sale takes a tenth off.
    price_cents = round(CATALOG[category][product] * (90 if day.month == 11 else 100))
    status = _status(chooser, day)
    revenue_cents = 0 if status == "cancelled" else int(quantity) * price_cents
    returned = status == "delivered" and chooser.happens(RETURN_RATES[region])
    reasons = WEST_REASONS if region == "West" else REASONS
    expected = day + timedelta(days=chooser.whole(2, 5) + (2 if region == "West" else 0))
    return [
        f"SO-{number}",
        day.isoformat(),
        customer,
        region,
        category,
        product,
        str(quantity),
        _money(price_cents),
        _money(revenue_cents),
        status,
        "yes" if returned else "no",
        chooser.pick(reasons) if returned else "",
        "" if status == "cancelled" else expected.isoformat(),
    ]


def _product_weights(category: str, day: date) -> dict[str, float]:
    passed = (day - FIRST_DAY).days / (LAST_DAY - FIRST_DAY).days
    weights = dict.fromkeys(CATALOG[category], 1.0)
    if DECLINING_PRODUCT in weights:
        weights[DECLINING_PRODUCT] = 2.4 - 2.2 * passed
    return weights


def _status(chooser: Chooser, day: date) -> str:
    if chooser.happens(0.035):
        return "cancelled"
    age_days = (LAST_DAY - day).days
    if age_days < 3:
        return "processing"
    if age_days < 7:
        return "shipped"
    return "delivered"


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"


if __name__ == "__main__":
    TARGET.write_text(make(), encoding="utf-8", newline="")

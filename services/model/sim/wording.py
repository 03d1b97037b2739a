"""Counts tokens, and words what the simulator says."""

import random
import re
from collections.abc import Mapping
from typing import Any

import orjson

_TOKEN = re.compile(r"[A-Za-z]{1,6}|\d{1,3}|[^\sA-Za-z\d]")
"""Is close enough to real vocabularies: six letters, three digits or one sign a token."""
_HAN = re.compile("[\u3400-\u9fff]")
WORDS = (
    "the order the region the quarter the product sales returns stock demand supply growth margin "
    "average total first last more less rose fell stayed shows means covers includes follows about "
    "nearly exactly together again early late north south east west and or but with from into over"
).split()
HAN_WORDS = tuple(
    "订单地区季度产品销售退货库存需求供应增长利润平均总共首先最后更多更少上升下降包括表明"
)
MAX_DEPTH = 8
"""How deep an instance of a schema is made; a schema may refer to itself."""


def count_tokens(text: str) -> int:
    """Return how many tokens a text has, by the vocabulary of the simulator."""
    return len(_TOKEN.findall(text))


def tokenize(text: str) -> list[int]:
    """Return the tokens of a text as numbers, the same for the same piece."""
    return [int.from_bytes(piece.encode()[:3], "big") for piece in _TOKEN.findall(text)]


def sentence(rng: random.Random, count: int, like: str) -> list[str]:
    """Return so many tokens of text: words with the space before them, or Han characters.

    Args:
        rng: where chance comes from.
        count: how many tokens.
        like: a text whose language is taken.
    """
    if _HAN.search(like):
        return [rng.choice(HAN_WORDS) if i % 12 < 11 else "。" for i in range(count)]
    words = [rng.choice(WORDS) for _ in range(count)]
    for i in range(0, count, 10):
        words[i] = words[i].capitalize()
    for i in range(9, count, 10):
        words[i] += "."
    return [f" {word}" if i else word for i, word in enumerate(words)]


def spoken(text: str, count: int) -> list[str]:
    """Return a text word by word, repeated until it has so many tokens; 0 says it once."""
    words = text.split(" ")
    count = count or len(words)
    return [f" {words[i % len(words)]}" if i else words[0] for i in range(count)]


def shortened(pieces: list[str], stops: list[str]) -> list[str]:
    """Return the pieces up to the first of the stop texts."""
    text = "".join(pieces)
    ends = [at for stop in stops if stop and (at := text.find(stop)) >= 0]
    if not ends:
        return pieces
    left = min(ends)
    kept: list[str] = []
    for piece in pieces:
        if left <= 0:
            break
        kept.append(piece[:left])
        left -= len(piece)
    return kept


def sliced(text: str, length: int = 6) -> list[str]:
    """Return a text in pieces of so many characters."""
    return [text[i : i + length] for i in range(0, len(text), length)]


def as_json(value: Any) -> str:
    """Return JSON as a model would write it."""
    return orjson.dumps(value).decode()


def instance(schema: Any, root: Any = None, depth: int = 0) -> Any:
    """Return the simplest value that a JSON schema allows, as far as common keywords say."""
    root = schema if root is None else root
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return None
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    if isinstance(reference := schema.get("$ref"), str):
        return instance(_resolved(reference, root), root, depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return instance(schema[key][0], root, depth + 1)
    return _of_type(schema, root, depth)


def _of_type(schema: Mapping[str, Any], root: Any, depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    match kind:
        case "object":
            return {
                name: instance(inner, root, depth + 1)
                for name, inner in dict(schema.get("properties", {})).items()
            }
        case "array":
            count = max(1, int(schema.get("minItems", 1)))
            return [instance(schema.get("items", {}), root, depth + 1)] * count
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "null":
            return None
    return "text".ljust(int(schema.get("minLength", 0)), "t")


def _resolved(reference: str, root: Any) -> Any:
    found = root
    for part in reference.removeprefix("#/").split("/"):
        found = found.get(part, {}) if isinstance(found, Mapping) else {}
    return found

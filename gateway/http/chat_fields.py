"""Defines what OpenAI's requests have in common, and what we take beyond them."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from gateway.question import MAX_NAME_CHARS
from services.runtime.conversation_rules import MAX_STOP_CHARS, NAME
from services.runtime.errors import InvalidArgumentError
from services.runtime.language import LANGUAGES
from sixhop.type.v1 import artifact_pb2, run_pb2

AUTO = "auto"
"""The model that lets routing choose among the agents."""
MAX_ITEMS = 1000
"""More messages than any model is given."""
MAX_TOKENS = 2**31 - 1
MAX_SEED = 2**63 - 1
Delivery = Literal["buffered", "live"]
DELIVERIES: Mapping[str, run_pb2.Delivery.ValueType] = {
    "buffered": run_pb2.DELIVERY_BUFFERED,
    "live": run_pb2.DELIVERY_LIVE,
}


class Read(BaseModel):
    """Is a part of a request; what is not known of it is not read."""

    model_config = ConfigDict(
        frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class ReadWhole(Read):
    """Is a part of a request that may have nothing else: what is unknown could change its sense."""

    model_config = ConfigDict(extra="forbid")


def _refuse(value: object) -> None:
    if value is not None:
        raise PydanticCustomError("not_taken", "is not taken here; leave it out")


NotTaken = Annotated[None, BeforeValidator(_refuse)]
"""A field whose value would have to change the answer, and cannot."""


def _refuse_true(value: bool) -> bool:
    if value:
        raise PydanticCustomError("not_taken", "is not taken here; leave it out")
    return value


Off = Annotated[bool, AfterValidator(_refuse_true), WithJsonSchema({"const": False})]
"""A switch that cannot be on."""

# What follows is for the document alone: these rules hold for every door, and are kept behind them.
_FILE_NAME = {"type": "string", "minLength": 1, "maxLength": MAX_NAME_CHARS}
_FUNCTION = {"type": "string", "pattern": f"^{NAME}$"}
_BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_STOP = {"type": "string", "minLength": 1, "maxLength": MAX_STOP_CHARS}
FileName = Annotated[str, WithJsonSchema(_FILE_NAME)]
FunctionTitle = Annotated[str, WithJsonSchema(_FUNCTION)]
"""The name of a function, or of a JSON schema."""
Base64 = Annotated[
    str, WithJsonSchema({"type": "string", "contentEncoding": "base64", "pattern": _BASE64})
]
Filled = Annotated[str, WithJsonSchema({"type": "string", "minLength": 1})]
Language = Annotated[str, WithJsonSchema({"enum": ["", *LANGUAGES]})]
SessionName = Annotated[str, WithJsonSchema({"type": "string", "maxLength": MAX_NAME_CHARS})]
Stop = Annotated[str, WithJsonSchema(_STOP)]


class ContentPart(Read):
    """Is a part of a message; only text is taken."""

    type: str
    text: str | None = None
    refusal: str | None = None


class SourceFile(ReadWhole):
    """Is a file that a question is about."""

    name: FileName
    """Its name with its extension; alone, it names a file in the data folder of the suite."""
    content_base64: Base64 = ""

    def source(self, at: str) -> artifact_pb2.DataSource:
        """Return it for the run.

        Raises:
            InvalidArgumentError: the content is not base64.
        """
        try:
            content = base64.b64decode(self.content_base64, validate=True)
        except ValueError:  # binascii's own is one as well; what is not ASCII is only this
            raise InvalidArgumentError(f"{at}.content_base64", "is not base64") from None
        return artifact_pb2.DataSource(name=self.name, content=content)


class Extension(ReadWhole):
    """Is what this suite takes beyond OpenAI's fields."""

    delivery: Delivery | None = None
    """How a stream gives its text: `live`, as it is written, or `buffered`, once it is complete,
    so that another model can begin anew unseen. The setting of the door without it; the header
    `x-sixhop-delivery` says the same."""
    language: Language = ""
    """The language to answer in: `en`, `zh`, or empty to follow the question."""
    session_id: SessionName = ""
    """Groups runs of one conversation."""
    # A tuple: what has a list in it has no hash, and pydantic copies such a default each time.
    sources: tuple[SourceFile, ...] = Field(default=(), max_length=MAX_ITEMS)
    """Files that the question is about."""


def text_of(content: str | Sequence[ContentPart] | None, at: str, kinds: Sequence[str]) -> str:
    """Return the text of a message.

    Args:
        content: the message's content.
        at: its field, such as `messages[0].content`.
        kinds: the types of parts that hold text.

    Raises:
        InvalidArgumentError: a part of it is no text.
    """
    if content is None or isinstance(content, str):
        return content or ""
    for number, part in enumerate(content):
        if part.type not in kinds:
            raise InvalidArgumentError(
                f"{at}[{number}].type",
                f"{part.type[:64]!r} is not taken; send text, as {' or '.join(kinds)}",
            )
    return "".join(part.text or part.refusal or "" for part in content)


def schema_text(schema: Mapping[str, Any] | None, at: str) -> str:
    """Return a JSON schema as it travels; empty for none.

    Raises:
        InvalidArgumentError: it holds a number that JSON does not have.
    """
    if schema is None:
        return ""
    try:
        return json.dumps(schema, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        raise InvalidArgumentError(at, "holds a number that JSON does not have") from None


_INDEX = re.compile(r"\[(\d+)\]")


class Naming:
    """Tells clients of a wrong field by the name that it has in their request."""

    def __init__(
        self, names: Mapping[str, str], places: Sequence[str], last: str, offered: Sequence[int]
    ) -> None:
        """Take the names.

        Args:
            names: the client's, by those in our protos below `question` and `generation`. `[]`
                stands for an index, and `@` for a message of the history.
            places: the client's field of every message of the history.
            last: the client's field that `question.text` comes from.
            offered: the client's number of every tool.
        """
        self._names = {**names, "text": last}
        self._places = places
        self._offered = offered

    def retell(self, error: InvalidArgumentError) -> None:
        """Give an error the client's name of its field."""
        name = self.name(error.field)
        error.field = name
        error.retell(f"{name}: {error.problem}" if name else error.problem, {"field": name})

    def name(self, field: str) -> str:
        """Return the client's name for a field of ours, such as `question.history[3].content`."""
        ours = field.removeprefix("question.").removeprefix("generation.")
        indices = _INDEX.findall(ours)
        begin, rest = _INDEX.sub("[]", ours), ""
        while begin and begin not in self._names:
            begin, _, part = begin.rpartition(".")
            rest = f".{part}{rest}"
        if not begin:
            return ours
        name = self._names[begin] + rest
        if "@" in name:
            number = int(indices.pop(0))
            known = number < len(self._places)
            place = self._places[number] if known else self._names["history"]
            if "[" not in place:
                return place
            name = name.replace("@", place)
        elif begin.startswith("tools[]") and int(indices[0]) < len(self._offered):
            indices[0] = str(self._offered[int(indices[0])])
        for index in indices:
            name = name.replace("[]", f"[{index}]", 1)
        return name.replace("[]", "")

"""Makes runs of requests that go on with a conversation, in whichever words they came."""

from abc import abstractmethod
from collections.abc import Collection, Sequence

from gateway.http.chat_fields import AUTO, DELIVERIES, Delivery, Extension, Naming, ReadWhole
from services.runtime.errors import InvalidArgumentError
from sixhop.gateway.v1 import gateway_pb2
from sixhop.type.v1 import chat_pb2, generation_pb2, run_pb2


class AnswerRequest(ReadWhole):
    """Asks for the next words of a conversation; what differs in OpenAI's two kinds is abstract."""

    model: str = AUTO
    """The agent that shall answer; `auto` lets sixhop choose."""
    sixhop: Extension = Extension()

    @property
    def agent(self) -> str:
        """Return the agent that is asked for; empty lets routing choose."""
        return "" if self.model == AUTO else self.model

    @property
    def offered(self) -> list[int]:
        """Return which of the caller's tools are offered: all, or those that its choice allows.

        To offer no more than these is what every provider understands.

        Raises:
            InvalidArgumentError: it allows one that is not there.
        """
        names, allowed = self._tool_names(), self._allowed()
        if allowed is None:
            return list(range(len(names)))
        for name in allowed:
            if name not in names:
                problem = f"allows {name[:64]!r}, which is not the name of an offered tool"
                raise InvalidArgumentError("tool_choice", problem)
        return [number for number, name in enumerate(names) if name in allowed]

    def run_request(self, usual: Delivery, longest: int) -> gateway_pb2.RunRequest:
        """Return the run that is asked for.

        Args:
            usual: how text is delivered when the request does not say.
            longest: how many characters a question may have; a longer last word is the end of the
                history instead, which an agent that converses answers.

        Raises:
            InvalidArgumentError: a field holds what no run can be given.
        """
        return gateway_pb2.RunRequest(
            question=self._question(longest),
            agent=self.agent,
            delivery=DELIVERIES[self.sixhop.delivery or usual],
        )

    def ask_request(self, longest: int) -> gateway_pb2.AskRequest:
        """Return the same for an answer that is given whole; raises as `run_request` does."""
        return gateway_pb2.AskRequest(question=self._question(longest), agent=self.agent)

    def _question(self, longest: int) -> run_pb2.Question:
        history, text = self._said(), ""
        last = history[-1].role
        if last == chat_pb2.CHAT_ROLE_USER:
            text = history.pop().content if len(history[-1].content) <= longest else ""
        elif last != chat_pb2.CHAT_ROLE_TOOL:
            raise InvalidArgumentError(*self._wrong_end())
        return run_pb2.Question(
            text=text,
            history=history,
            tools=list(map(self._offer, self.offered)),
            tool_choice=self._tool_choice(),
            generation=self._generation(),
            language=self.sixhop.language,
            session_id=self.sixhop.session_id,
            sources=[
                file.source(f"sixhop.sources[{at}]") for at, file in enumerate(self.sixhop.sources)
            ],
        )

    @property
    @abstractmethod
    def naming(self) -> Naming:
        """Return what the fields of the question are called in this request."""

    @abstractmethod
    def _said(self) -> list[chat_pb2.ChatMessage]:
        """Return the conversation, oldest first; there is something in it."""

    @abstractmethod
    def _wrong_end(self) -> tuple[str, str]:
        """Return the field and the problem of a conversation that ends with an agent's word."""

    @abstractmethod
    def _tool_names(self) -> Sequence[str]:
        """Return what the caller's own tools are called."""

    @abstractmethod
    def _offer(self, number: int) -> chat_pb2.ToolOffer:
        """Return one of them."""

    @abstractmethod
    def _tool_choice(self) -> str:
        """Return which of them is to be asked for: `none`, `auto`, `required`, a name, or empty."""

    @abstractmethod
    def _allowed(self) -> Collection[str] | None:
        """Return the names of those that may be asked for; None where that is not said."""

    @abstractmethod
    def _generation(self) -> generation_pb2.GenerationOptions:
        """Return how the text is to be written."""

"""A language model behind a talk: whole prompts in, words and calls out."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, Protocol, TypeAlias

from assistant.base.picture import Picture
from assistant.contracts.keeper import CapsuleKeeper
from assistant.contracts.work import Cost, Stateful, Synced
from assistant.events import ToolSpec

PICTURE = "[picture]"
"""Stands for a picture that the model cannot see."""
CANNOT_SEE = "I can't see pictures. I can only hear and read, so tell me in words what it shows."
"""The answer, word for word, to questions about a picture: a model that cannot see would guess."""
ABOUT_A_PICTURE = re.compile(
    r"\b(?:th(?:is|at|ese|ose)|here|see[ns]?|look(?:s|ing)?|show[ns]?|pictures?|images?|photo(?:graph)?s?|drawings?"
    r"|paintings?|screen(?:shot)?s?|camera|colou?rs?|reads?|describe|recogni[sz]e"
    r"|(?:what|who|where)(?:'s| is) (?:it|he|she)|does it say)\b",
    re.IGNORECASE,
)
"""Words that ask about a picture beside them; "what time is it" does not."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model wrote it; `arguments` is JSON text."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class PlacedPicture:
    """A picture in a user's line, before character `at` of the text and behind earlier pictures at the same place."""

    at: int
    picture: Picture


@dataclass(frozen=True, slots=True)
class Line:
    """One message of a prompt. `reply_id` names the reply that produced it, so that its tokens are reused."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    reply_id: str | None = None
    call_id: str | None = None
    """In a tool line: the call it answers."""
    pictures: tuple[PlacedPicture, ...] = ()
    """For a user's line, in order. Only for a model that `sees`; the line's text may be empty then."""

    @property
    def in_words(self) -> Line:
        """The line with a word in place of each picture."""
        ends = [0, *(placed.at for placed in self.pictures), len(self.text)]
        pieces = [self.text[begin:end] for begin, end in pairwise(ends)]
        return replace(self, text=f" {PICTURE} ".join(pieces).strip(), pictures=()) if self.pictures else self


@dataclass(frozen=True, slots=True)
class Prompt:
    """Everything a reply depends on. If an assistant line is a beginning of its reply, it was cut there."""

    system: str
    tools: tuple[ToolSpec, ...] = ()
    lines: tuple[Line, ...] = ()
    realm: str = ""
    """Prompts find the folded beginnings of other prompts in the same realm, never those of another realm."""

    def asks_to_see(self, english: bool = True) -> bool:
        """Whether pictures stand behind the last answer, seen or as words, and the words beside them ask about them or
        are missing. In another language than English, all words count as asking."""
        answered = max((n for n, line in enumerate(self.lines, 1) if line.role == "assistant"), default=0)
        said = " ".join(line.in_words.text for line in self.lines[answered:] if line.role == "user")
        words = said.replace(PICTURE, " ").strip()
        return PICTURE in said and (not words or not english or ABOUT_A_PICTURE.search(words) is not None)

    @property
    def in_words(self) -> Prompt:
        """The prompt for a model that cannot see."""
        return replace(self, lines=tuple(line.in_words for line in self.lines))


@dataclass(frozen=True, slots=True)
class ReplyOptions:
    """The options of one reply. None leaves a value to the engine's own default."""

    reply_id: str
    max_tokens: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    tool_choice: str = "auto"
    reusable: bool = False
    """Whether `publish_prefix` will be called to let others go on from this prompt."""
    english: bool = True
    """Whether the talk is in English, as far as is known."""
    cannot_see: str = CANNOT_SEE
    """Said instead of a guess by a model that cannot see; "": it is asked all the same, with a word for the picture."""


@dataclass(frozen=True, slots=True)
class PromptReady:
    """First piece of a reply: the state is in place and the prompt is folded. A server that counts tokens only at the
    end of its answer sends zeros first, and this piece once more."""

    input_tokens: int
    cached_tokens: int
    costs: tuple[Cost, ...] = ()
    """`picture`: the part spent on seeing and folding pictures."""
    image_tokens: int = 0
    """The input tokens of pictures and their marks."""
    cached_image_tokens: int = 0
    shown_tokens: int = 0
    """The image tokens of the turn that is answered, cached or not."""
    picture_ms: float = 0.0
    """Milliseconds it took to see the pictures of that turn, mostly before anybody waited; 0 for known ones."""


@dataclass(frozen=True, slots=True)
class TextPiece:
    text: str


@dataclass(frozen=True, slots=True)
class CallPiece:
    """Part of a call. The first piece of a call carries its name; `done` means that the arguments are complete."""

    call_id: str
    name: str
    arguments: str
    done: bool


@dataclass(frozen=True, slots=True)
class BadCall:
    """A call that the model wrote and nobody can read; it is reported and not run."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReplyEnd:
    """Last piece of a reply."""

    reason: Literal["stop", "length", "tool_calls"]
    output_tokens: int
    costs: tuple[Cost, ...] = ()


ReplyPiece: TypeAlias = PromptReady | TextPiece | CallPiece | BadCall | ReplyEnd


class LLM(Protocol):
    """A language model behind a talk. All errors of the engine are raised as EngineFailed."""

    @property
    def name(self) -> str: ...

    @property
    def sees(self) -> bool:
        """Whether it takes pictures. If not, no line has any, and `[picture]` in the text marks their places."""
        ...

    @property
    def state(self) -> StatefulLLM | None:
        """The model itself, if it stores the state of talks here. For a server, each reply sends the whole talk."""
        ...

    def reply(self, talk: str, prompt: Prompt, options: ReplyOptions) -> AsyncGenerator[ReplyPiece, None]:
        """Make a reply. Closing the generator stops the engine before its next step."""
        ...

    async def warm(self, listed: Mapping[str, Prompt], *, idle_work: bool = False) -> Mapping[str, Synced]:
        """Make these beginnings of prompts (personas, by name) ready, from disk if possible, and hold them until
        another list omits them. Prompts with these beginnings find them. `idle_work`: all other work comes first."""
        ...


class StatefulLLM(LLM, Stateful, Protocol):
    """A language model that stores the state of talks between turns."""

    @property
    def keeper(self) -> CapsuleKeeper:
        """The stored capsules of prompts, for programs."""
        ...

    async def sync(self, talk: str, prompt: Prompt) -> Synced:
        """Bring the state in line with the prompt before the next reply: roll back everything that no longer holds."""
        ...

    async def fold_heard(self, talk: str, prompt: Prompt) -> None:
        """Fold the words of a user who still speaks, the prompt's last line, as far as they leave the next reply the
        same bit for bit. If folded words have changed, go back to there. Nobody waits for this."""
        ...

    async def prepare(self, talk: str, prompt: Prompt) -> None:
        """Fold in advance what the next reply would have to fold before its own turn. Nobody waits: all other work
        comes first; a request for this talk stops it, and the next reply goes on from there."""
        ...

    async def turn_end_probability(self, talk: str, prompt: Prompt) -> float | None:
        """The probability that the last line, a user's, is complete. None: finding out would fold too much."""
        ...

    async def publish_prefix(self, talk: str, prompt: Prompt) -> str | None:
        """End a talk whose replies were `reusable`, and let later prompts of this realm that begin like this one go on
        from here. Their state equals that of a run from nothing. Forgets the talk; returns the capsule's key, None if
        none is stored."""
        ...

"""Messages to ids through the checkpoint's own chat template, with the boundaries that are worth a capsule.

The template is a program from the internet: it runs in Jinja's immutable sandbox. Thinking is off unless asked for.
"""

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from llm_engine.errors import TextError
from llm_engine.tokenizer import TextTokenizer

Message = Mapping[str, Any]

_ASKED, _ANSWERED = "QxASKEDxQ", "QxANSWEREDxQ"  # stand for turns whose surroundings are wanted
_END, _START, _REPLY = "<|im_end|>", "<|im_start|>", "<|im_start|>assistant\n"


@dataclass(frozen=True)
class Boundary:
    """A position in a prompt where a capsule is worth its bytes.

    name  "system": persona and tools, shared by every talk with them
          "reply": up to and with `<|im_start|>assistant\\n`, the last place that every later rendering shares,
          because some templates drop the empty thinking block of earlier replies
    """

    name: str
    position: int


@dataclass(frozen=True)
class ChatPrompt:
    """A rendered conversation."""

    ids: tuple[int, ...]
    boundaries: tuple[Boundary, ...]


class ChatTemplate:
    """The template alone: messages to text."""

    def __init__(self, source: str) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise
        environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise TextError(f"the chat template is no valid Jinja: {error}") from error

    @classmethod
    def load(cls, path: str | Path) -> "ChatTemplate":
        """From a checkpoint directory: chat_template.jinja, else the field of tokenizer_config.json."""
        folder = Path(path)
        if (folder / "chat_template.jinja").is_file():
            return cls((folder / "chat_template.jinja").read_text("utf-8"))
        config = folder / "tokenizer_config.json"
        found = json.loads(config.read_text("utf-8")).get("chat_template") if config.is_file() else None
        if isinstance(found, list):  # several by name
            found = next((entry.get("template") for entry in found if entry.get("name") == "default"), None)
        if not isinstance(found, str):
            raise TextError(f"{folder}: no chat_template.jinja and no chat_template in tokenizer_config.json")
        return cls(found)

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        add_generation_prompt: bool = True,
        *,
        thinking: bool = False,
        **options: Any,
    ) -> str:
        """Text with its markup. Raises TextError with the template's own words if it refuses the messages."""
        try:
            return self._template.render(
                messages=list(messages),
                tools=list(tools) or None,
                add_generation_prompt=add_generation_prompt,
                enable_thinking=thinking,
                **options,
            )
        except (TemplateError, TypeError, ValueError, RecursionError, OverflowError) as error:
            raise TextError(f"the chat template refuses these messages: {error}") from error


class Chat:
    """Template and tokenizer together."""

    def __init__(self, tokenizer: TextTokenizer, template: ChatTemplate) -> None:
        self.tokenizer, self.template = tokenizer, template

    @classmethod
    def load(cls, path: str | Path) -> "Chat":
        """Raises TextError."""
        return cls(TextTokenizer.load(path), ChatTemplate.load(path))

    def system(self, text: str, tools: Sequence[Mapping[str, Any]] = ()) -> list[int]:
        """The ids of the system turn alone; empty if the template writes none.

        A template renders no conversation without a user, so one is rendered with a stand-in and cut before it.
        """
        messages = [{"role": "system", "content": text}] if text else []
        whole = self.template.render([*messages, {"role": "user", "content": _ASKED}], tools, False)
        return self.tokenizer.encode(whole[: whole.rindex(_START, 0, whole.index(_ASKED))])

    def prompt(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), *, thinking: bool = False
    ) -> ChatPrompt:
        """A whole conversation up to where the reply begins."""
        text = self.template.render(messages, tools, True, thinking=thinking)
        ids = self.tokenizer.encode(text)
        found = []
        if messages and messages[0].get("role") == "system":
            system = self.system(str(messages[0].get("content", "")), tools)
            if system and ids[: len(system)] == system:
                found.append(Boundary("system", len(system)))
        if _REPLY in text:
            stable = self.tokenizer.encode(text[: text.rindex(_REPLY) + len(_REPLY)])
            if ids[: len(stable)] == stable:
                found.append(Boundary("reply", len(stable)))
        return ChatPrompt(tuple(ids), tuple(found))

    def proceed(self, previous: Sequence[int], messages: Sequence[Message], *, thinking: bool = False) -> list[int]:
        """The ids that carry a conversation on from `previous`, which is never rendered again.

        previous   everything so far: prompt and reply as generated, cut or whole, with or without its <|im_end|>
        messages   what is new: user and tool messages
        returns    the end of the open turn if it has none, the new turns, and the opening of the next reply
        Rendering a whole conversation anew would re-tokenise old replies and may drop their thinking block, so that no
        state could be reused; ids are only ever appended. Raises TextError.
        """
        opened = [{"role": "user", "content": _ASKED}, {"role": "assistant", "content": _ANSWERED}]
        whole = self.template.render([*opened, *messages], (), True, thinking=thinking)
        if _ANSWERED not in whole:
            raise TextError("the chat template does not write earlier replies, so a talk cannot be carried on with it")
        text = whole[whole.index(_ANSWERED) + len(_ANSWERED) :]
        tail = self.tokenizer.encode("\n")
        end = self.tokenizer.id_of(_END)
        if previous and previous[-1] == end:
            text = text.removeprefix(_END)
        elif list(previous[-len(tail) - 1 :]) == [end, *tail]:
            text = text.removeprefix(_END + "\n")
        return self.tokenizer.encode(text)


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **_: Any) -> str:
    """As transformers renders tools: no HTML escapes."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _raise(message: str) -> None:
    raise TemplateError(message)

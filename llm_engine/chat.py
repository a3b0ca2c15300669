"""Messages to text through the checkpoint's own chat template, and the tokenizer that turns it into ids.

The template is a program from the internet: it runs in Jinja's immutable sandbox. Thinking is off unless asked for.
"""

import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from llm_engine.errors import TextError
from llm_engine.gguf.container import is_gguf, open_gguf
from llm_engine.gguf.tokens import template_of
from llm_engine.tokenizer import TextTokenizer

Message = Mapping[str, Any]


class ChatTemplate:
    """The template alone: messages to text. `begin` and `end`: what it may write around a whole sequence."""

    def __init__(self, source: str, begin: str = "", end: str = "") -> None:
        # Llama's would write the tools into the first user's turn, which then could not grow at its end.
        self._always = {"bos_token": begin, "eos_token": end, "tools_in_user_message": False}
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
        """From a checkpoint directory, chat_template.jinja or else the field of tokenizer_config.json; or a GGUF file.

        Raises TextError, CheckpointError.
        """
        if is_gguf(path):
            return cls(*template_of(open_gguf(path)))
        folder = Path(path)
        file = folder / "tokenizer_config.json"
        config = json.loads(file.read_text("utf-8")) if file.is_file() else {}
        around = _text(config.get("bos_token")), _text(config.get("eos_token"))
        if (folder / "chat_template.jinja").is_file():
            return cls((folder / "chat_template.jinja").read_text("utf-8"), *around)
        found = config.get("chat_template")
        if isinstance(found, list):  # several, by name
            found = next((entry.get("template") for entry in found if entry.get("name") == "default"), None)
        if not isinstance(found, str):
            raise TextError(f"{folder}: no chat_template.jinja and no chat_template in tokenizer_config.json")
        return cls(found, *around)

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        add_generation_prompt: bool = True,
        *,
        thinking: bool = False,
        **options: Any,
    ) -> str:
        """Text with its markup. Raises TextError with the template's own message if it refuses the messages."""
        try:
            return self._template.render(
                messages=list(messages),
                tools=list(tools) or None,
                add_generation_prompt=add_generation_prompt,
                enable_thinking=thinking,
                thinking=thinking,  # the same switch as Granite and DeepSeek name it
                **self._always,
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


def _text(token: Any) -> str:
    """A special token as tokenizer_config.json writes it: its text, or an object that holds it."""
    found = token.get("content") if isinstance(token, dict) else token
    return found if isinstance(found, str) else ""


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **_: Any) -> str:
    """JSON as transformers renders tools: no HTML escapes."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _raise(message: str) -> None:
    raise TemplateError(message)

"""Shared by the commands that talk: flags for models, and a talk followed on the terminal."""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from assistant.app.parts import PARTS
from assistant.base.errors import AssistantError
from assistant.base.extras import adding
from assistant.events import (
    AudioDelta,
    Error,
    Event,
    IdleTimeout,
    ItemTruncated,
    LanguageTold,
    Message,
    PersonaSwitched,
    Response,
    ResponseCreated,
    ResponseDone,
    SpokenText,
    TextPart,
    Timeline,
    ToolUsed,
    TranscriptCompleted,
)

ASR_HELP = "the ears: auto, moonshine, pocketsphinx, a folder with Moonshine or Whisper, or a server that transcribes"
JSON_HELP = "save the words, figures and times here, as JSON"
SAY_HELP = "the words to say"
WAV_HELP = "save the sound here: 24 kHz, mono"
DEVICES = "auto|cpu|cuda"
MODEL_FLAGS = (
    "profile", "llm", "tts", "asr", "device", "llm_device", "tts_device", "dtype", "without", "persona",
    "language", "voice", "first_chunk", "max_positions", "threads",
)  # fmt: skip
NO_WAKE_WORDS = f"wake words such as “hey jarvis” need: {adding('wake')}; personas answer to their names"
BAR = 40
LAST_WORDS = 6
REASONS = {"turn_detected": "interrupted", "client_cancelled": "stopped"}


def add_asr_argument(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--asr", metavar="NAME|PATH|URL", help=ASR_HELP)


def add_wake_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--wake", action="store_true", help="listen only when called: “Ada, …”, “hey Ben, …”, or a "
                        "wake word such as “hey jarvis” (docs/wake.md)")


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags that choose models; each has a setting of the same name in config.toml and the environment.

    A command adds them behind its own, so that its own stand first in its help.
    """
    models = parser.add_argument_group("models", "each can also be set in config.toml, or as ASSISTANT_NAME")

    def add(flag: str, metavar: str, text: str) -> None:
        models.add_argument(flag, metavar=metavar, help=text)

    add("--profile", "NAME", "a set of models: tiny (shipped), laptop, desk, … (`assistant pull` lists them); default: "
        "the best on this machine that fits the free memory")
    add("--llm", "PATH|URL", "another language model: its folder, or a server such as http://localhost:8000/v1")
    add("--tts", "PATH|URL", "another voice model: its folder, or a server that speaks")
    add_asr_argument(models)
    add("--persona", "NAME", "who answers: ada, ben, or a file in $ASSISTANT_HOME/personas")
    add("--language", "CODE", "the language of talks, such as de; what cannot be done in it is said once")
    add("--voice", "NAME", "another voice than the persona's own (`assistant voice list`)")
    add("--device", DEVICES, "where the models run; default: on a GPU, if they are made for one")
    add("--llm-device", DEVICES, "where the language model runs, if not on --device")
    add("--tts-device", DEVICES, "where the voice runs, if not on --device")
    add("--dtype", "TYPE[,TYPE]", "float32, bfloat16, or packed to save memory: float8 (GPU), int8 (processor) or int4 "
        "(a third of the size); a second one is for the voice")
    add("--without", "PART[,PART]", f"leave out {', '.join(f'{part} ({what})' for part, what in PARTS.items())}")
    add("--first-chunk", "exact|fast", "fast: sound starts earlier and differs a little (exact)")
    add("--max-positions", "TOKENS", "longest talk in tokens (4096)")
    add("--threads", "N", "processor threads for the models (0: chosen for the models)")


def model_flags(args: argparse.Namespace) -> dict[str, object]:
    """The flags that were given, for `load_config`."""
    return {name: getattr(args, name) for name in MODEL_FLAGS}


def check_writable(path: Path | None) -> None:
    """Before minutes of work whose result is to be saved there. Raises AssistantError."""
    if path is None:
        return
    if path.is_dir():
        raise AssistantError(f"{path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise AssistantError(f"{path} cannot be written: there is no folder {path.parent}; make it, or name another")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise AssistantError(f"{path} cannot be written: permission denied; name a file in a folder of yours")


def save(path: Path, data: bytes) -> None:
    """Write a result as a whole, or nothing. Raises AssistantError."""
    whole = path.is_file() or not path.exists()  # a device or a pipe takes what comes
    aside = path.resolve().with_name(f".{path.name}.part") if whole and os.access(path.parent, os.W_OK) else path
    try:
        aside.write_bytes(data)
        if aside is not path:
            if path.exists():
                shutil.copymode(path, aside)
            aside.replace(path.resolve())
    except OSError as error:
        raise AssistantError(f"{path} could not be written: {error.strerror or error}") from error
    finally:
        if aside is not path:
            with suppress(OSError):
                aside.unlink(missing_ok=True)


@dataclass(slots=True)
class FollowedTurn:
    """One reply as a front saw it."""

    heard: str = ""
    said: str = ""
    status: str = ""
    samples: int = 0
    tools: list[dict[str, str]] = field(default_factory=list)
    timeline: Timeline | None = None


class Follow:
    """Reads events, keeps turns, and writes a line for each thing a person wants to know."""

    def __init__(self, write: Callable[[str], None], name: str) -> None:
        self.turns: list[FollowedTurn] = []
        self.errors: list[Error] = []
        self._write, self._name = write, name
        self._heard = ""
        self._tools: list[dict[str, str]] = []

    def take(self, event: Event) -> FollowedTurn | None:
        """The turn, when this event ends one."""
        match event:
            case TranscriptCompleted():
                self._heard = event.transcript
                self._write(f"you    {event.transcript or '(not understood)'}")
            case ResponseCreated():
                self.turns.append(FollowedTurn(self._heard))
                self._heard = ""
            case ToolUsed():
                self.turns[-1].tools.append({"name": event.name, "arguments": event.arguments, "output": event.output})
                self._write(f"tool   {event.name} {event.arguments} → {event.output}")
            case SpokenText():
                self.turns[-1].said += event.delta
            case AudioDelta():
                self.turns[-1].samples += event.pcm.size
            case PersonaSwitched():
                self._name = event.name
                self._write(f"       now {event.name} ({event.ms:.0f} ms)")
            case LanguageTold():
                for sentence in event.limits:
                    self._write(f"note   {sentence}")
            case IdleTimeout():
                self._write("       (silence)")
            case Error():
                self.errors.append(event)
                self._write(f"error  {event.message}")
            case ItemTruncated():
                words = event.transcript.split()
                cut = "… " if len(words) > LAST_WORDS else ""
                told = f"until “{cut}{' '.join(words[-LAST_WORDS:])}”" if words else "nothing of it"
                self._write(f"       (heard {told})")
            case ResponseDone():
                return self._done(event.response, event.timeline)
        return None

    def _done(self, response: Response, timeline: Timeline | None) -> FollowedTurn:
        turn = self.turns[-1]
        turn.status, turn.timeline = response.status, timeline
        if response.modality == "text":
            messages = (item for item in response.output if isinstance(item, Message))
            turn.said = "".join(part.text for item in messages for part in item.content if isinstance(part, TextPart))
        self._write(f"{self._name:<6} {turn.said.strip()}{how_it_ended(response)}")
        return turn


def how_it_ended(response: Response) -> str:
    """Behind the words; nothing where the reply was said to its end."""
    if response.error_message:
        return f"  [failed: {response.error_message}]"
    if response.status == "completed":
        return ""
    reason = response.reason or ""
    return f"  [{REASONS.get(reason, f'{response.status} {reason}'.strip())}]"


def timeline_lines(timeline: Timeline) -> list[str]:
    """A turn's time as bars: parts that follow each other and sum to the total."""
    total = max(timeline.total_ms, 1e-9)
    lines = []
    for part in timeline.parts:
        begin = round(part.start_ms / total * BAR)
        length = max(1, round(part.ms / total * BAR)) if part.ms >= 0.05 else 0
        bar = " " * min(begin, BAR - length) + "█" * length
        lines.append(f"       {part.name:<12} {part.ms:8.1f} ms  {bar}")
    lines.append(f"       {'total':<12} {timeline.total_ms:8.1f} ms")
    figures = ", ".join(
        f"{name.removesuffix('_ms').replace('_', ' ')} {value:.0f} ms"
        for name, value in timeline.figures.items()
        if name.endswith("_ms") and name not in ("restore_ms", "rollback_ms")
    )
    return [*lines, f"       {figures}"] if figures else lines

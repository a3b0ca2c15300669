"""What the commands that talk have in common: flags for models, and a talk followed on the terminal."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from assistant.base.errors import AssistantError
from assistant.events import (
    AudioDelta,
    Error,
    Event,
    IdleTimeout,
    ItemTruncated,
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

ASR_HELP = "auto, moonshine, pocketsphinx, a folder with Moonshine or Whisper, or the URL of a transcription server"
MODEL_FLAGS = (
    "profile", "llm", "tts", "asr", "device", "llm_device", "tts_device", "dtype", "tts_dtype", "persona", "voice",
    "first_chunk", "max_positions", "threads", "kernels", "vision",
)  # fmt: skip
BAR = 40
LAST_WORDS = 6
REASONS = {"turn_detected": "interrupted", "client_cancelled": "stopped"}


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags that choose models; each has a setting of the same name in config.toml and the environment."""
    models = parser.add_argument_group("models")
    models.add_argument("--profile", help="tiny (shipped, any machine), laptop, desk-8, …, as `assistant pull` "
                        "lists them; default: by free memory")
    models.add_argument("--llm", help="a model directory, or the URL of a server that speaks chat completions")
    models.add_argument("--tts", help="a model directory, or the URL of a server that speaks audio speech")
    models.add_argument("--asr", help=ASR_HELP)
    models.add_argument("--device", help="auto, cpu or cuda")
    models.add_argument("--llm-device", help="of the language model alone: auto, cpu or cuda")
    models.add_argument("--tts-device", help="of the voice alone; the shipped one runs on the processor beside a GPU")
    models.add_argument("--dtype", help="float32, bfloat16, or packed while loading: float8 or int8 (half the memory; "
                        "the one on a GPU, the other on a processor), int4 (a third, of the language model)")
    models.add_argument("--tts-dtype", help="the same for the voice alone; int8 and int4 are for a large one")
    models.add_argument(
        "--no-vision", dest="vision", action="store_const", const="off", help="leave a model's eyes out: 0.2 to 0.9 GB"
    )
    models.add_argument("--persona", help="who answers: ada, ben, or a file of yours in ASSISTANT_HOME/personas")
    models.add_argument("--voice", help="another voice than the persona's own")
    models.add_argument("--first-chunk", help="exact, or fast: sound starts earlier and differs a little")
    models.add_argument("--max-positions", help="longest talk in tokens")
    models.add_argument("--threads", help="processor threads for the models")
    models.add_argument("--kernels", help="auto, torch, or compiled: C++ for this processor, built once (needs g++)")


def model_flags(args: argparse.Namespace) -> dict[str, object]:
    """The flags that were given, for `load_config`."""
    return {name: getattr(args, name) for name in MODEL_FLAGS}


def check_writable(path: Path | None) -> None:
    """Before minutes of work whose result is to be saved there. Raises AssistantError."""
    if path is not None and (path.is_dir() or not os.access(path.parent, os.W_OK)):
        raise AssistantError(f"{path} cannot be written; name a file in a folder that exists and is yours")


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
                self._write(f"       now {event.name} ({event.ms:.0f} ms)")
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

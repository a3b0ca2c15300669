"""Transcribe recordings as text, subtitles, or JSON with times. Loads only the ears, no other model.

  assistant transcribe memo.mp3                         text, one line for each stretch of speech
  assistant transcribe talk.wav --format srt --out talk.srt
  assistant transcribe *.flac --format json             segments, words and confidence of each file
  assistant transcribe call.ogg --asr http://gpu-box:8000/v1#whisper-large-v3

WAV, FLAC, OGG and MP3 files of any rate and length are read, and with the extra `files` (docs/install.md) m4a, webm and
others. Files that cannot be read are reported first, and the others are transcribed; the exit status is then 1. Words
have times if the ears know them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.base.errors import AssistantError
from assistant.commands._front import add_asr_argument, check_writable, save

if TYPE_CHECKING:
    from assistant.asr.recording import Segment
    from assistant.contracts import ASR

NAME = "transcribe"
USAGE = "FILE [FILE ...] [OPTIONS]"
HELP = "transcribe recordings as text, subtitles or JSON"
FORMATS = ("text", "srt", "vtt", "json")
LONG_S = 30.0
"""Recordings longer than this show their progress on a terminal."""


@dataclass(frozen=True, slots=True)
class Transcribed:
    """A recording, written down."""

    path: Path
    seconds: float
    segments: Sequence[Segment]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="recordings to transcribe")
    parser.add_argument("--format", choices=FORMATS, default="text", help="output format (text)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the result here instead of printing it")
    add_asr_argument(parser)


def run(args: argparse.Namespace) -> int:
    from assistant.app.config import load_config

    config = load_config({"asr": args.asr})
    if args.format in ("srt", "vtt") and len(args.files) > 1:
        raise AssistantError(f"--format {args.format} takes one recording; run the command once for each file")
    check_writable(args.out)
    readable = [path for path in args.files if _is_readable(path)]
    if not readable:
        return 1
    from assistant.app.ears import open_ears

    asr = open_ears(config, _tell)
    done: list[Transcribed] = []
    for path in readable:
        try:
            done.append(write_file(asr, path))
        except AssistantError as error:  # a server that fails, a file that has gone: the next may do
            _tell(str(error))
            continue
        if args.out is None and args.format == "text":
            print(text_of(done[-1], several=len(args.files) > 1), end="", flush=True)
    if args.out is not None:
        save(args.out, shown(done, args.format, asr.name).encode())
    elif args.format != "text":
        print(shown(done, args.format, asr.name), end="")
    return 0 if len(done) == len(args.files) else 1


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _is_readable(path: Path) -> bool:
    """Reports a file that cannot be read, before the ears are loaded."""
    from assistant.base.sound_file import check_sound

    try:
        check_sound(path)
    except AssistantError as error:
        _tell(str(error))
        return False
    return True


def write_file(asr: ASR, path: Path) -> Transcribed:
    """Raises AssistantError."""
    from contextlib import closing

    from rich.console import Console
    from rich.progress import Progress

    from assistant.asr.recording import writing_down
    from assistant.base.sound import HEARING_RATE
    from assistant.base.sound_file import read_sound

    pcm = read_sound(path)
    seconds = pcm.size / HEARING_RATE
    segments = []
    console = Console(stderr=True)
    with (
        closing(writing_down(asr, pcm)) as writing,
        Progress(console=console, transient=True, disable=seconds < LONG_S or not console.is_terminal) as bars,
    ):
        bar = bars.add_task(path.name, total=seconds)
        for segment in writing:
            segments.append(segment)
            bars.update(bar, completed=segment.end)
    return Transcribed(path, seconds, segments)


def shown(done: Sequence[Transcribed], form: str, engine: str) -> str:
    """All of it in one of the formats."""
    from assistant.asr.recording import subtitles

    if form == "text":
        return "".join(text_of(one, several=len(done) > 1) for one in done)
    if form == "json":
        files = [to_json(one) for one in done]
        return json.dumps({"engine": engine, "files": files}, indent=1, ensure_ascii=False) + "\n"
    return "".join(subtitles(one.segments, form) for one in done)


def text_of(one: Transcribed, several: bool) -> str:
    """A line for each stretch of speech; under its name, where there are several files."""
    head = f"==> {one.path} <==\n" if several else ""
    return head + "".join(f"{segment.text}\n" for segment in one.segments)


def to_json(one: Transcribed) -> dict[str, object]:
    """Times in seconds from the recording's start; what the ears do not know is left out."""
    return {
        "file": str(one.path),
        "seconds": round(one.seconds, 3),
        "text": " ".join(segment.text for segment in one.segments),
        "segments": [_segment_json(segment) for segment in one.segments],
    }


def _segment_json(segment: Segment) -> dict[str, object]:
    words = [
        _known(
            text=word.text,
            start=None if word.start_ms is None else word.start_ms / 1000,
            end=None if word.end_ms is None else word.end_ms / 1000,
            probability=word.probability,
        )
        for word in segment.words
    ]
    return _known(
        start=segment.start, end=segment.end, text=segment.text, confidence=segment.confidence, words=words
    )


def _known(**fields: object) -> dict[str, object]:
    rounded = {name: round(value, 3) if isinstance(value, float) else value for name, value in fields.items()}
    return {name: value for name, value in rounded.items() if value is not None}

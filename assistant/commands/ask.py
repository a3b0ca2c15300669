"""Talk with sound files: each file is one turn, played to the assistant in real time; the replies are saved.

  assistant ask question.wav --out reply.wav --json timeline.json
  assistant ask first.wav second.wav --out replies.wav          two turns of one talk
  assistant ask --say "what time is it" --out reply.wav         typed instead of spoken
  assistant ask --image cat.jpg --say "what is this"            a picture and a question about it
  assistant ask --fast question.wav                             as fast as possible, without turn detection

Files, --say and --image may be given again, and are taken in their order. WAV, FLAC, OGG and MP3 files of any rate are
read. Prints both sides of the conversation and how long each part of a turn took. Without --out nothing is saved.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from assistant.base.errors import AssistantError, PeerError
from assistant.commands._front import (
    JSON_HELP,
    SAY_HELP,
    WAV_HELP,
    Follow,
    FollowedTurn,
    add_model_arguments,
    check_writable,
    model_flags,
    save,
    timeline_lines,
)

if TYPE_CHECKING:
    from assistant.base.picture import Picture
    from assistant.talk import Session

NAME = "ask"
USAGE = "[FILE ...] [--say TEXT] [--image FILE] [--out WAV] [OPTIONS]"
HELP = "talk with sound files or typed text"
BLOCK_MS = 20
PAUSE_S = 0.4
"""Silence between two replies in the saved file."""
TAIL_S = 1.6
"""Silence that is spoken after a file, so that the turn can be heard to end."""
PATIENCE_S = 120.0
"""How long a reply may take, from the end of the question to its own end."""


@dataclass(frozen=True, slots=True)
class _Image:
    """A picture file; the turn that follows is about it."""

    path: Path

    def read(self) -> Picture:
        """Raises AssistantError for a file that is not a picture."""
        from assistant.base.picture import open_picture

        try:
            picture = open_picture(self.path.read_bytes())
            _ = picture.pixels
        except (OSError, PeerError) as error:
            if not self.path.exists():
                raise AssistantError(f"there is no file {self.path}; name a PNG, JPEG, WebP or GIF file") from None
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise AssistantError(f"{self.path} cannot be shown ({why}); name a PNG, JPEG, WebP or GIF file") from None
        return picture


class _InOrder(argparse.Action):
    """Files, typed texts and pictures belong to one talk in the order in which they stand on the command line."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace,
        values: str | Sequence[object] | None, option_string: str | None = None,
    ) -> None:  # fmt: skip
        given: list[str | Path | _Image]
        if isinstance(values, str):
            given = [_Image(Path(values)) if option_string == "--image" else values]
        else:
            given = [Path(str(value)) for value in values or ()]
        namespace.turns = [*namespace.turns, *given]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(turns=[])
    parser.add_argument("files", nargs="*", action=_InOrder, metavar="FILE", help="sound files, one for each turn")
    parser.add_argument("--say", action=_InOrder, metavar="TEXT", help=SAY_HELP)
    parser.add_argument("--image", action=_InOrder, metavar="FILE", help="a picture, shown with the next turn")
    parser.add_argument("--out", type=Path, metavar="WAV", help=WAV_HELP)
    parser.add_argument("--json", type=Path, metavar="FILE", help=JSON_HELP)
    parser.add_argument("--fast", action="store_true", help="do not play files in real time; each is exactly one turn")
    parser.add_argument("--quiet", action="store_true", help="print only the words")
    add_model_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from assistant.base.sound_file import check_sound
    from assistant.commands._run import run_async

    if not args.turns:
        raise AssistantError("nothing to ask; name a sound file, or type the question: --say \"what time is it\"")
    for turn in args.turns:
        if isinstance(turn, Path):
            if not turn.suffix and not turn.exists():
                raise AssistantError(f'there is no file "{turn}"; to type a question, put --say before it')
            check_sound(turn)
        elif isinstance(turn, _Image):
            turn.read()
        elif not turn.strip():
            raise AssistantError("--say: there are no words; type a question")
    check_writable(args.out)
    check_writable(args.json)
    return run_async(_ask(args))


async def _ask(args: argparse.Namespace) -> int:
    from assistant.app.config import load_config
    from assistant.app.start import open_talks
    from assistant.base.pcm import wav_bytes
    from assistant.events import SemanticVad

    quiet = (lambda line: None) if args.quiet else (lambda line: print(f"· {line}", file=sys.stderr, flush=True))
    async with open_talks(load_config(model_flags(args)), quiet, stays=False) as app:
        config = app.config
        detection = None if args.fast else SemanticVad("low")
        settings = replace(app.talks.defaults, paced=False, turn_detection=detection, memory=True)
        session = app.talks.open(settings)
        follow = Follow(lambda line: print(line, flush=True), app.personas[config.persona].title.lower())
        talk = _FileTalk(session, follow, args)
        running = asyncio.ensure_future(session.run())
        try:
            reading = asyncio.ensure_future(talk.read())
            for place, turn in enumerate(args.turns, 1):
                if isinstance(turn, _Image):
                    await talk.show(turn, alone=place == len(args.turns))
                else:
                    await talk.turn(turn)
            session.close()
            await running
            await reading
        finally:
            session.close()
            with suppress(asyncio.CancelledError):
                await running
            if args.out is not None:
                save(args.out, wav_bytes(talk.sound(), 24_000))
            if args.json is not None:
                told = {"facts": app.facts, "turns": talk.turns_json()}
                save(args.json, (json.dumps(told, indent=1) + "\n").encode())
    return 0 if all(turn.status == "completed" for turn in follow.turns) and not follow.errors else 1


class _FileTalk:
    """The front: speaks files, collects replies."""

    def __init__(self, session: Session, follow: Follow, args: argparse.Namespace) -> None:
        self._session, self._follow, self._args = session, follow, args
        self._pcm: list[np.ndarray] = []
        self._ended = asyncio.Event()
        self._begun = asyncio.Event()

    async def read(self) -> None:
        from assistant.events import AudioDelta, ResponseCreated

        async for event in self._session.events:
            if isinstance(event, AudioDelta):
                self._pcm.append(event.pcm)
            elif isinstance(event, ResponseCreated):
                self._begun.set()
            turn = self._follow.take(event)
            if turn is not None:
                self._pcm.append(np.zeros(int(PAUSE_S * 24_000), np.float32))
                self._show(turn)
                if turn.status == "cancelled":
                    self._begun.clear()  # the file went on speaking: what follows is the answer
                else:
                    self._ended.set()

    async def show(self, image: _Image, *, alone: bool) -> None:
        """Show a picture; `alone`: no words follow, so it is answered as it is."""
        from assistant.base.ids import random_ids
        from assistant.events import CreateItem, CreateResponse, Message, PicturePart

        picture = image.read()
        await self._session.send(CreateItem(Message(random_ids("item"), "user", (PicturePart(picture, frame=False),))))
        if not self._args.quiet:
            print(f"you    [{image.path.name}, {picture.width} x {picture.height}]", flush=True)
        if alone:
            self._ended.clear()
            await self._session.send(CreateResponse())
            await self._reply()

    async def turn(self, turn: Path | str) -> None:
        """Speak or type one turn and wait for the end of its reply."""
        from assistant.base.ids import random_ids
        from assistant.events import CommitAudio, CreateItem, CreateResponse, Message, TextPart

        self._begun.clear()
        self._ended.clear()
        send = self._session.send
        if isinstance(turn, str):
            await send(CreateItem(Message(random_ids("item"), "user", (TextPart(turn),))))
            if not self._args.quiet:
                print(f"you    {turn}", flush=True)
            await send(CreateResponse())
        else:
            await self._speak(turn)
            if not self._begun.is_set():
                await send(CommitAudio())
                await send(CreateResponse())
        await self._reply()

    async def _reply(self) -> None:
        """Wait for the end of the reply. Raises AssistantError if it takes too long."""
        try:
            await asyncio.wait_for(self._ended.wait(), PATIENCE_S)
        except TimeoutError:
            raise AssistantError(
                f"the reply did not end within {PATIENCE_S:.0f} s, so the talk was stopped; --out and --json have "
                "everything said until then. A smaller model is faster: --profile tiny"
            ) from None

    async def _speak(self, path: Path) -> None:
        """A file and some silence behind it, in real time until a reply begins."""
        from assistant.base.sound import HEARING_RATE as rate
        from assistant.base.sound_file import read_sound
        from assistant.events import AppendAudio

        pcm = read_sound(path)
        if self._args.fast:
            await self._session.send(AppendAudio(pcm, rate))
            return
        pcm = np.concatenate([pcm, np.zeros(int(TAIL_S * rate), np.float32)])
        loop = asyncio.get_running_loop()
        block, begin = rate * BLOCK_MS // 1000, loop.time()
        spoken = pcm.size - int(TAIL_S * rate)
        for start in range(0, pcm.size, block):
            await asyncio.sleep(max(0.0, begin + (start + block) / rate - loop.time()))
            await self._session.send(AppendAudio(pcm[start : start + block], rate))
            if start > spoken and self._begun.is_set():
                return

    def _show(self, turn: FollowedTurn) -> None:
        if turn.timeline is not None and not self._args.quiet:
            print("\n".join(timeline_lines(turn.timeline)), flush=True)

    def sound(self) -> np.ndarray:
        return np.concatenate(self._pcm) if self._pcm else np.zeros(0, np.float32)

    def turns_json(self) -> list[dict[str, object]]:
        from assistant.telemetry.trace import to_json

        return [
            {
                "heard": turn.heard, "said": turn.said.strip(), "status": turn.status, "tools": turn.tools,
                "seconds": round(turn.samples / 24_000, 3),
                "timeline": None if turn.timeline is None else to_json(turn.timeline),
            }
            for turn in self._follow.turns
        ]  # fmt: skip

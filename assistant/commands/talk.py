"""Talk with this machine's own microphone and loudspeaker, no browser. Ctrl-C ends it.

  assistant talk
  assistant talk --devices                       list microphones and loudspeakers
  assistant talk --microphone 3 --loudspeaker 5
  assistant talk --wake                          be silent until you say “Ada, …”, “hey Ben, …” or “hey jarvis, …”
  assistant talk --camera                        show the model a picture each time you begin to speak
  assistant talk --camera 1                      use another camera: its number, or a file such as /dev/video2

Without headphones the microphone picks up the loudspeaker. This echo is always removed; the extra
`talk` (docs/install.md) adds an echo canceller that removes it sooner after the first word.

A camera needs the extra `camera` and a model that can see. Its pictures are not kept.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.base.errors import DeviceError, SettingError
from assistant.base.extras import adding
from assistant.commands._front import (
    NO_WAKE_WORDS,
    Follow,
    add_model_arguments,
    add_wake_argument,
    model_flags,
    timeline_lines,
)

if TYPE_CHECKING:
    from assistant.base.channel import Channel
    from assistant.events import Pcm
    from assistant.local.camera import Camera
    from assistant.local.player import Player
    from assistant.talk import Session

NAME = "talk"
USAGE = "[OPTIONS]"
HELP = "talk with this machine's microphone and loudspeaker"
REPORT_S = 0.1
WAKE_STATES = {"waiting": "waiting for a name", "called": "yes?", "open": "listening"}
NO_CANCELLER = f"headphones are best; {adding('talk')} brings an echo canceller"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--devices", action="store_true", help="list microphones and loudspeakers, and exit")
    parser.add_argument("--microphone", metavar="DEVICE", help="its number, or a part of its name")
    parser.add_argument("--loudspeaker", metavar="DEVICE", help="its number, or a part of its name")
    parser.add_argument("--camera", nargs="?", const="0", metavar="DEVICE", help="show the model this camera (0)")
    add_wake_argument(parser)
    parser.add_argument("--times", action="store_true", help="print how long each part of a turn took")
    add_model_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from assistant.commands._run import run_async
    from assistant.local.devices import check_devices, list_devices

    if args.devices:
        print(list_devices())
        return 0
    check_devices(args.microphone, args.loudspeaker)
    if args.camera is None:
        return run_async(_talk(args, None))
    from assistant.local.camera import Camera

    with closing(Camera(args.camera)) as camera:
        return run_async(_talk(args, camera))


async def _talk(args: argparse.Namespace, camera: Camera | None) -> int:
    from assistant.app.config import load_config
    from assistant.app.start import open_talks
    from assistant.base.channel import Channel
    from assistant.events import SemanticVad
    from assistant.local.devices import chatter_to, loudspeaker, microphone
    from assistant.local.echo import echo_canceller
    from assistant.local.player import Player

    config = load_config(model_flags(args))
    async with open_talks(config, _tell) as app:
        if camera is not None and not app.models.llm.sees:
            raise SettingError("--camera: this language model cannot see; start without it, or with a model that can")
        if camera is not None:
            _tell("the camera is on: one picture is taken when you begin to speak")
        settings = replace(
            app.talks.defaults, turn_detection=SemanticVad(), duck=True, memory=True, wake=args.wake
        )
        session = app.talks.open(settings)
        player = Player()
        sound: Channel[Pcm] = Channel(100)
        follow = Follow(lambda line: print(line, flush=True), app.personas[config.persona].title.lower())
        echo = echo_canceller()
        advice = NO_CANCELLER if echo is None else "the loudspeaker's echo is removed"
        with (
            chatter_to(config.logs / "sound.log"),
            microphone(sound, args.microphone, echo, _tell) as ear,
            loudspeaker(player, args.loudspeaker, echo, _tell) as mouth,
        ):
            if args.wake and app.talks.wake_words is None:
                _tell(NO_WAKE_WORDS)
            _tell(f"listening; {advice}; Ctrl-C ends")
            lost: Sequence[Exception] = ()
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(session.run())
                    group.create_task(_listen(session, sound))
                    for beside in (_report(session, player), ear.tend(), mouth.tend()):
                        group.create_task(beside)
                    await follow_talk(session, player, follow, args.times, camera)
            except* DeviceError as group_of_one:
                lost = group_of_one.exceptions
            if lost:
                raise lost[0]
    return 0


def _tell(line: str) -> None:
    print(f"· {line}", file=sys.stderr, flush=True)


async def follow_talk(
    session: Session, player: Player, follow: Follow, times: bool, camera: Camera | None = None
) -> None:
    """Play what comes, yield when told to, say exactly what was heard, and show what the camera sees as the user begins
    to speak."""
    from assistant.events import (
        AudioDelta,
        Duck,
        ReportHeard,
        Resume,
        SightChanged,
        SpeechStarted,
        StopPlayback,
        TruncateItem,
        WakeChanged,
    )
    from assistant.local.chime import CHIME

    async for event in session.events:
        match event:
            case AudioDelta():
                player.put(event.item_id, event.pcm)
            case Duck():
                player.duck(event.level)
            case Resume():
                player.unduck()
            case WakeChanged():
                if event.state == "called":
                    player.put("", CHIME)
                _tell(WAKE_STATES[event.state])
            case SightChanged(sees=False) if camera is not None:
                camera.close()
                camera = None
                _tell("the model that answers now cannot see; the camera is off")
            case StopPlayback() | SpeechStarted():
                item_id = player.current and player.stop()  # the chime may sound to its end
                player.unduck()
                if item_id:
                    heard_ms = player.heard_samples(item_id) / 24
                    await session.send(ReportHeard(item_id, heard_ms))
                    await session.send(TruncateItem(item_id, 0, int(heard_ms)))
                if camera is not None and isinstance(event, SpeechStarted):
                    camera = await _show(session, camera)
        turn = follow.take(event)
        if turn is not None and times and turn.timeline is not None:
            print("\n".join(timeline_lines(turn.timeline)), flush=True)


async def _show(session: Session, camera: Camera) -> Camera | None:
    """Send what the camera sees now. Returns None once it is gone."""
    from assistant.base.ids import random_ids
    from assistant.events import CreateItem, Message, PicturePart

    picture = await asyncio.to_thread(camera.picture)
    if picture is None:
        _tell("the camera is gone; the talk goes on without it")
        return None
    await session.send(CreateItem(Message(random_ids("frame"), "user", (PicturePart(picture, frame=True),))))
    return camera


async def _listen(session: Session, sound: Channel[Pcm]) -> None:
    from assistant.base.errors import ChannelClosed
    from assistant.events import REPLY_RATE, AppendAudio

    async for block in sound:
        try:
            await session.send(AppendAudio(block, REPLY_RATE))
        except ChannelClosed:
            return


async def _report(session: Session, player: Player) -> None:
    """Tell the session what was heard while it plays: the timeline's last part comes from this."""
    from assistant.base.errors import ChannelClosed
    from assistant.events import ReportHeard

    while True:
        await asyncio.sleep(REPORT_S)
        item_id = player.current
        if item_id:
            try:
                await session.send(ReportHeard(item_id, player.heard_samples(item_id) / 24))
            except ChannelClosed:
                return

"""Manage the assistant's voices: the model's own, those designed for personas, and those that you add.

  assistant voice list                        list all voices, and where each came from
  assistant voice add NAME recording.wav      add a voice from ten seconds of somebody who agrees to it
  assistant voice try NAME --out try.wav      hear a sentence in a voice
  assistant voice rm NAME                     remove a voice that no persona uses

A voice model without voices of its own (Higgs Audio v3) designs one for each persona, once. A recording added under the
persona's name replaces it, and `voice = "NAME"` in a persona's file chooses any other. A running server finds new ones
by itself. Only the codec codes and the transcript of a recording are stored, in $ASSISTANT_HOME/voices; nothing is
uploaded. The shipped small model has two voices and cannot imitate others.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.base.errors import AssistantError
from assistant.commands._front import SAY_HELP, WAV_HELP, add_model_arguments, check_writable, model_flags, save

if TYPE_CHECKING:
    from assistant.app.config import Config
    from assistant.app.voices import KeptVoices

NAME = "voice"
USAGE = "ACTION [OPTIONS]"
HELP = "list voices, add one from a recording, hear one, remove one"
SENTENCE = "Hello. This is how I sound when I answer you, and I hope that you like it."
CONSENT = "A voice belongs to a person: use only your own, or one whose owner agrees."
ORIGINS = {"own": "the model's own", "designed": "designed", "given": "a recording"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", prog="assistant voice")
    ls = actions.add_parser("ls", aliases=["list"], usage="assistant voice list [OPTIONS]", help="list all voices",
                            description="List all voices, and where each came from.")  # fmt: skip
    add = actions.add_parser("add", usage="assistant voice add NAME FILE [OPTIONS]", help="add a recording as a voice",
                             description="Add a voice from a recording, for models that imitate voices.")  # fmt: skip
    add.add_argument("name", metavar="NAME", help="how the voice is called from now on")
    add.add_argument("file", metavar="FILE", type=Path, help="3 to 30 seconds of one person, ideally ten without noise")
    add.add_argument("--transcript", metavar="TEXT", help="the words in it (default: what the assistant's ears hear)")
    add.add_argument("--replace", action="store_true", help="replace an earlier recording of this name")
    rm = actions.add_parser("rm", usage="assistant voice rm NAME [OPTIONS]", help="remove a voice",
                            description="Remove a voice that no persona uses.")  # fmt: skip
    rm.add_argument("name", metavar="NAME", help="the voice to remove")
    listen = actions.add_parser("try", usage="assistant voice try NAME --out WAV [OPTIONS]", help="hear a voice",
                                description="Speak a sentence with a voice, into a file.")  # fmt: skip
    listen.add_argument("name", metavar="NAME", help="the voice to hear")
    listen.add_argument("--say", default=SENTENCE, metavar="TEXT", help=SAY_HELP)
    listen.add_argument("--out", type=Path, required=True, metavar="WAV", help=WAV_HELP)
    for action in (ls, add, rm, listen):
        add_model_arguments(action)


def run(args: argparse.Namespace) -> int:
    from assistant.app.checks import check_voice
    from assistant.app.config import load_config
    from assistant.commands._run import run_async
    from assistant.personas import load_personas

    config = load_config(model_flags(args))
    if args.action == "try":
        check_writable(args.out)
        check_voice(config, args.name, load_personas(config.home / "personas"))
        return run_async(_try(config, args.name, args.say, args.out))
    voices = _voices(config)
    if args.action == "rm":
        voices.remove(args.name)
        print(f"removed {args.name}")
    elif args.action == "add":
        print(CONSENT, file=sys.stderr)
        made = voices.add(args.name, args.file, args.transcript, replace=args.replace)
        print(f"{made.name}: {made.seconds:g} s, “{made.transcript}”\nassistant voice try {made.name} --out try.wav")
    else:
        print_list(voices)
    return 0


def _voices(config: Config) -> KeptVoices:
    from assistant.app.ears import check_ears, open_ears
    from assistant.app.voices import KeptVoices, voice_folder
    from assistant.personas import load_personas

    check_ears(config)
    return KeptVoices(voice_folder(config), load_personas(config.home / "personas"), lambda: open_ears(config))


def print_list(voices: KeptVoices) -> None:
    from rich.console import Console
    from rich.table import Table

    spoken = {one.voice: one.title for one in voices.personas.values()}
    table = Table("voice", "from", "seconds", "made", "persona", "transcript")
    for one in voices.listing():
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.made_at)) if one.made_at else ""
        length = f"{one.seconds:.1f}" if one.seconds else ""
        table.add_row(one.name, ORIGINS[one.origin], length, made, spoken.get(one.name, ""), one.transcript)
    if table.row_count:
        Console().print(table)
    else:
        print("no voices yet: one is designed for each persona when it first speaks; `assistant voice add` adds others")


async def _try(config: Config, name: str, text: str, out: Path) -> int:
    import numpy as np

    from assistant.app.start import open_talks
    from assistant.base.pcm import wav_bytes

    async with open_talks(config, lambda line: print(f"· {line}", file=sys.stderr, flush=True)) as app:
        tts = app.talks.engines.tts
        if name not in tts.voices:
            raise AssistantError(f"there is no voice {name!r}; choose from {', '.join(tts.voices)}")
        async with aclosing(tts.speak("try", name, "try", text)) as sounds:
            made = [sound.pcm async for sound in sounds]
        if (state := tts.state) is not None:
            await state.forget_talk("try")
    if not made:
        raise AssistantError(f"there is nothing to say in {text!r}; give some words")
    await asyncio.to_thread(save, out, wav_bytes(np.concatenate(made), 24_000))
    print(f"{name} → {out}")
    return 0

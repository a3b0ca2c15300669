"""Look after the assistant's voices: those of the voice model, those designed for personas, those that you add.

  assistant voice ls                          what there is, and what each came from
  assistant voice add NAME recording.wav      ten seconds of somebody who agrees to it; what is said is written down
                                              by the assistant's ears, unless --transcript says it
  assistant voice try NAME --out try.wav      hear a sentence in it
  assistant voice rm NAME                     remove it; refused while a persona speaks with it, unless --anyway

A voice model without voices of its own (Higgs Audio v3) gets one for each persona, designed once; a recording added
under the persona's name takes its place, and `voice = "NAME"` in a persona's file chooses any other. A server that runs
finds what was added. The recording stays where it is, of it the codes that the model reads are kept, in
$ASSISTANT_HOME/voices; nothing is uploaded. The shipped small model has two voices and takes no recordings.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterable
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.base.errors import AssistantError
from assistant.commands._front import add_model_arguments, check_writable, model_flags

if TYPE_CHECKING:
    from assistant.app.config import Config
    from assistant.app.voices import KeptVoices

NAME = "voice"
HELP = "the assistant's voices: list them, add a recording, hear one, remove one"
SENTENCE = "Hello. This is how I sound when I answer you, and I hope that you like it."
CONSENT = "A voice belongs to a person: use only your own, or one whose owner agrees."
ORIGINS = {"own": "the model's own", "designed": "designed", "given": "a recording"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    ls = actions.add_parser("ls", help="what there is")
    add = actions.add_parser("add", help="make a recording a voice")
    add.add_argument("name")
    add.add_argument("file", type=Path, help="3 to 30 s of one person, as clean as can be; ten are good")
    add.add_argument("--transcript", metavar="TEXT", help="what is said in it, word by word")
    add.add_argument("--replace", action="store_true", help="in place of the recording of this name")
    rm = actions.add_parser("rm", help="remove")
    rm.add_argument("name")
    rm.add_argument("--anyway", action="store_true", help="although a persona speaks with it")
    listen = actions.add_parser("try", help="hear a sentence")
    listen.add_argument("name")
    listen.add_argument("--say", default=SENTENCE, metavar="TEXT")
    listen.add_argument("--out", type=Path, required=True, metavar="WAV", help="save the sound here, 24 kHz")
    for action in (ls, add, rm, listen):
        add_model_arguments(action)


def run(args: argparse.Namespace) -> int:
    from assistant.app.config import load_config
    from assistant.commands._run import run_async

    config = load_config(model_flags(args))
    if args.action == "try":
        check_writable(args.out)
        check_name(config, args.name)
        return run_async(_try(config, args.name, args.say, args.out))
    voices = _voices(config)
    if args.action == "ls":
        print_list(voices)
    elif args.action == "rm":
        voices.remove(args.name, anyway=args.anyway)
        print(f"removed {args.name}")
    else:
        print(CONSENT, file=sys.stderr)
        made = voices.add(args.name, args.file, args.transcript, replace=args.replace)
        print(f"{made.name}: {made.seconds:g} s, “{made.transcript}”\nassistant voice try {made.name} --out try.wav")
    return 0


def _voices(config: Config) -> KeptVoices:
    from assistant.app.ears import check_ears, open_ears
    from assistant.app.voices import KeptVoices, voice_folder
    from assistant.personas import load_personas

    check_ears(config)
    return KeptVoices(voice_folder(config), load_personas(config.home / "personas"), lambda: open_ears(config))


def check_name(config: Config, name: str) -> None:
    """Before any model is loaded. A voice that a persona asks for may yet be designed; a server knows its own."""
    from assistant.remote import is_address

    if is_address(config.tts):
        return
    voices = _voices(config)
    known = dict.fromkeys(one.name for one in voices.listing())
    known |= dict.fromkeys(one.voice for one in voices.personas.values() if one.voice and voices.folder.imitates)
    if name not in known:
        raise unknown_voice(name, known)


def unknown_voice(name: str, known: Iterable[str]) -> AssistantError:
    return AssistantError(f"there is no voice {name!r}; there is {', '.join(known)}")


def print_list(voices: KeptVoices) -> None:
    from rich.console import Console
    from rich.table import Table

    spoken = {one.voice: one.title for one in voices.personas.values()}
    table = Table("voice", "from", "seconds", "made", "persona", "what is said in it")
    for one in voices.listing():
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.made_at)) if one.made_at else ""
        length = f"{one.seconds:.1f}" if one.seconds else ""
        table.add_row(one.name, ORIGINS[one.origin], length, made, spoken.get(one.name, ""), one.transcript)
    if table.row_count:
        Console().print(table)
    else:
        print("none yet: one is designed for each persona when it first speaks; `assistant voice add` makes others")


async def _try(config: Config, name: str, text: str, out: Path) -> int:
    import numpy as np

    from assistant.app.start import open_talks
    from assistant.base.pcm import write_wav

    async with open_talks(config, lambda line: print(f"· {line}", file=sys.stderr, flush=True)) as app:
        tts = app.talks.engines.tts
        if name not in tts.voices:
            raise unknown_voice(name, tts.voices)
        async with aclosing(tts.speak("try", name, "try", text)) as sounds:
            made = [sound.pcm async for sound in sounds]
        if (state := tts.state) is not None:
            await state.forget_talk("try")
    if not made:
        raise AssistantError(f"nothing in {text!r} can be said; give some words")
    await asyncio.to_thread(write_wav, out, np.concatenate(made), 24_000)
    print(f"{name} → {out}")
    return 0

"""List the language models on this machine: whether they run here, what they would need, or why they do not.

  assistant models                ours, the hub's cache, Ollama, LM Studio and llama.cpp
  assistant models FOLDER         everything below a folder
  assistant models check NAME     load a model, and see whether it speaks sense; without NAME the one that would run

`--llm NAME` takes any of them, by its name here or its path. Files are read in place, never copied.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from assistant.base.errors import SettingError

NAME = "models"
USAGE = "[FOLDER | check [NAME]]"
HELP = "list the language models on this machine, or check one"
POSITIONS = 4096


def add_arguments(parser: argparse.ArgumentParser) -> None:
    told = "look below this folder alone, or check the model of this name or path"
    parser.add_argument("what", nargs="*", metavar="FOLDER|check NAME", help=told)


def run(args: argparse.Namespace) -> int:
    from assistant.app.config import load_config
    from assistant.app.found import FOLDER, ModelPlace, find_models, known_models
    from assistant.app.verdict import verdict

    if args.what[:1] == ["check"]:
        return check(args.what[1:])
    if len(args.what) > 1:
        raise SettingError(f"one folder, or `check` and one model, are understood; not {' '.join(args.what)}")
    if args.what and not Path(args.what[0]).is_dir():
        raise SettingError(f"there is no folder {args.what[0]}")
    places = [ModelPlace(FOLDER, Path(folder)) for folder in args.what]
    found = list(find_models(places)) if places else known_models(load_config().models)
    if not found:
        print("there is no language model here; `assistant pull` fetches one")
        return 0
    for model in found:
        size = f"{model.nbytes / 1e9:.1f} GB, " if model.nbytes else ""
        print(f"{model.name}\n    {model.program}, {size}{model.trouble or verdict(model.path, POSITIONS).told}")
    return 0


def check(names: list[str]) -> int:
    """Print what a first look at a model finds. The status is 1 if something is out of bounds."""
    from assistant.app.config import load_config
    from assistant.app.models import look_again
    from llm_engine.errors import LLMError
    from llm_engine.firstlook import MOST_BITS, QUESTION

    if len(names) > 1:
        raise SettingError(f"one model is checked at a time, not {' and '.join(names)}")
    config = load_config({"llm": names[0]} if names else None)
    try:
        look, engine = look_again(config, print)
    except LLMError as error:
        raise SettingError(f"the model cannot be loaded: {error}") from error
    judged = "not judged: it was taught its own phrases alone" if look.narrow else f"at most {MOST_BITS:g} are allowed"
    print(f"an English paragraph   {look.text_bits:.2f} bits a letter ({judged})")
    print(f"a fixed answer         {look.answer_bits:.2f} bits a letter, then the end with {look.end_chance:.0%}")
    print(f"{QUESTION}  {look.reply.strip()!r}, which {'ended' if look.ended else 'did not end'} by itself")
    print(f"form                   {engine.config.vocab_size} tokens known, fingerprint {engine.fingerprint.digest}")
    print(look.trouble or "it speaks sense")
    return 1 if look.trouble else 0

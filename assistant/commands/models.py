"""List the language models on this machine: whether they run here, what they would need, or why they do not.

  assistant models             ours, the hub's cache, Ollama, LM Studio and llama.cpp
  assistant models FOLDER      everything below a folder

`--llm NAME` takes any of them, by its name here or its path. Files are read in place, never copied.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from assistant.base.errors import SettingError

NAME = "models"
USAGE = "[FOLDER]"
HELP = "list the language models on this machine"
POSITIONS = 4096


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="look below this folder alone")


def run(args: argparse.Namespace) -> int:
    from assistant.app.config import load_config
    from assistant.app.found import FOLDER, ModelPlace, find_models, known_models
    from assistant.app.verdict import verdict

    if args.folder is not None and not args.folder.is_dir():
        raise SettingError(f"there is no folder {args.folder}")
    place = None if args.folder is None else ModelPlace(FOLDER, args.folder)
    found = known_models(load_config().models) if place is None else list(find_models([place]))
    if not found:
        print("there is no language model here; `assistant pull` fetches one")
        return 0
    for model in found:
        size = f"{model.nbytes / 1e9:.1f} GB, " if model.nbytes else ""
        print(f"{model.name}\n    {model.program}, {size}{model.trouble or verdict(model.path, POSITIONS)}")
    return 0

"""The ears: they find speech and write its words down.

agreement      which words will not change any more
bias           expected words, lifted
cutting        where a long utterance is cut
detector       speech or not
echo_filter    the way from loudspeaker to microphone, learnt and taken out
echo_search    is there an echo of what is played, and how late
foreground     the user's, or that of people in the background
graph_facts    what an ONNX file says of itself
grown          the words of one stretch, read again and again
level          how much louder a quiet voice is made
likely         which of several texts was more likely said
local          a detector and a transcriber for each talk
moonshine      open English on any processor: the default
naming         the name that a sound begins with, asked of it
network        its two graphs
own_voice      ours told from the user's
paced          what is the same for every engine: queue, cadence, pauses
pocketsphinx   twelve hundred words, where nothing better runs
raised         speech of people who shout
recording      a whole recording, with segments
rehearsal      does an engine keep up on this machine
sense          was anything sensible said
silero         the network behind the detector, on one thread
streaming      Moonshine's streaming sizes, from a folder
tiny/          the words that pocketsphinx knows, with their card
tokens         Moonshine's pieces of text
transducer     streaming transducers, from a folder
wake_words     phrases that call a talk, each found by a small network
whisper        Whisper of any size and language, from a folder
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.asr.rehearsal import keeps_up
from assistant.base.errors import SettingError
from assistant.base.extras import adding
from assistant.contracts import Rescorer

if TYPE_CHECKING:
    from assistant.asr.local import LocalASR

AUTO = "auto"
KINDS = {"moonshine": "assistant.asr.moonshine", "pocketsphinx": "assistant.asr.pocketsphinx"}
"""A setting's value → the module whose `open_asr(rescorer)` makes it. A new engine is one file and one row here; `auto`
takes the first that runs on this machine. A fetched streaming size comes before all of them, if it keeps up."""
FOLDERS = {
    "streaming_config.json": "assistant.asr.streaming",
    "joiner*.onnx": "assistant.asr.transducer",
    "model.bin": "assistant.asr.whisper",
}
"""A file that tells a kind of folder → the module whose `open_asr(folder)` opens it. The first that is there counts."""
EXTRAS = {"assistant.asr.transducer": "transducer", "assistant.asr.whisper": "whisper"}
"""A module → the extra of this package that brings what it imports, where that is not `ears`."""


def open_asr(
    asked: str, report: Callable[[str], None] = lambda line: None, fetched: Sequence[Path] = (),
    rescorer: Callable[[], Rescorer] | None = None,
) -> LocalASR:  # fmt: skip
    """Ears, warm: of a kind, `auto`, or a model's folder. Takes seconds; call it off the event loop.

    Raises SettingError for what cannot be opened; `auto` passes it over and reports why. `fetched`: the folders that
    `auto` may take, the best first. `rescorer` opens a second opinion for ears that choose among several texts.
    """
    if asked == AUTO:
        return _best(fetched, report, rescorer)
    module = module_of(asked)
    try:
        opening = import_module(module)
        needed = (rescorer and rescorer()) if asked in KINDS else Path(asked).expanduser()
        found: LocalASR = opening.open_asr(needed)
    except ImportError as error:
        extra = EXTRAS.get(module, "ears")
        raise SettingError(
            f"--asr {asked} needs the package {error.name}; run: {adding(extra)}"
        ) from error
    return found


def module_of(asked: str) -> str:
    """The module that opens a kind or a folder. Raises SettingError for anything else, before a model is loaded."""
    if asked in KINDS:
        return KINDS[asked]
    folder = Path(asked).expanduser()
    if not folder.is_dir():
        known = ", ".join((AUTO, *KINDS))
        raise SettingError(f"--asr: there are no ears {asked!r}; choose from {known}, or give a folder or a server (http://…)")
    for telling, module in FOLDERS.items():
        if any(folder.glob(telling)):
            return module
    needs = "; ".join(f"{telling} ({module.rpartition('.')[2]})" for telling, module in FOLDERS.items())
    raise SettingError(f"--asr: {folder} does not contain a supported model; it must have one of: {needs}")


def _best(
    fetched: Sequence[Path], report: Callable[[str], None], rescorer: Callable[[], Rescorer] | None
) -> LocalASR:
    for folder in fetched:
        try:
            asr = open_asr(str(folder))
        except SettingError as error:
            report(f"fetched ears are passed over: {error}")
            continue
        fits, told = keeps_up(asr)
        report(f"{asr.name} {'hears' if fits else 'is too slow here'}: {told}")
        if fits:
            return asr
    *better, last = KINDS
    for kind in better:
        try:
            return open_asr(kind, rescorer=rescorer)
        except SettingError as error:
            report(f"hearing falls back to {last}, which knows few words: {error}")
    return open_asr(last, rescorer=rescorer)

"""Where speech is, and what was said.

agreement      which words will not change any more
bias           expected words, lifted
cutting        where a long utterance is cut
detector       speech or not
level          how much louder a quiet voice is made
local          a detector and a transcriber for each talk
moonshine      open English on any processor: the default
network        its two graphs
paced          what is the same for every engine: queue, cadence, pauses
pocketsphinx   twelve hundred words, where nothing better runs
recording      a whole recording, with segments
rehearsal      does an engine keep up on this machine
sense          was anything sensible said
streaming      Moonshine's streaming sizes, from a folder
tiny/          the words that pocketsphinx knows, with their card
tokens         Moonshine's pieces of text
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from assistant.asr.rehearsal import keeps_up
from assistant.base.errors import SettingError
from assistant.contracts import ASR

AUTO = "auto"
KINDS = {"moonshine": "assistant.asr.moonshine", "pocketsphinx": "assistant.asr.pocketsphinx"}
"""A setting's value → the module whose `open_asr()` makes it. A new engine is one file and one row here; `auto` takes
the first that runs on this machine. A fetched streaming size comes before all of them, if it keeps up."""
FOLDER = "assistant.asr.streaming"
"""What a folder is opened with."""


def open_asr(asked: str, report: Callable[[str], None] = lambda line: None, fetched: Sequence[Path] = ()) -> ASR:
    """Ears, warm: of a kind, `auto`, or a folder of a streaming model. Takes seconds; call it off the event loop.

    Raises SettingError for what cannot be opened; `auto` passes it over and reports why. `fetched`: the folders that
    `auto` may take, the best first.
    """
    if asked == AUTO:
        return _best(fetched, report)
    if asked not in KINDS and not Path(asked).expanduser().is_dir():
        known = ", ".join((AUTO, *KINDS))
        raise SettingError(f"asr: there is no engine and no folder {asked!r}; known: {known}, or a model's folder")
    try:
        module = import_module(KINDS.get(asked, FOLDER))
        found: ASR = module.open_asr() if asked in KINDS else module.open_asr(Path(asked).expanduser())
    except ImportError as error:
        raise SettingError(
            f"--asr {asked} needs a package that is not here ({error.name}); pip install 'voice-assistant[ears]'"
        ) from error
    return found


def _best(fetched: Sequence[Path], report: Callable[[str], None]) -> ASR:
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
            return open_asr(kind)
        except SettingError as error:
            report(f"hearing falls back to {last}, which knows few words: {error}")
    return open_asr(last)

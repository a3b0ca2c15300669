"""Where speech is, and what was said.

agreement      which words will not change any more
bias           expected words, lifted
cutting        where a long utterance is cut
detector       speech or not
grown          the words of one stretch, read again and again
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
whisper        Whisper of any size and language, from a folder
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from assistant.asr import streaming, whisper
from assistant.asr.rehearsal import keeps_up
from assistant.base.errors import SettingError
from assistant.contracts import ASR

AUTO = "auto"
KINDS = {"moonshine": "assistant.asr.moonshine", "pocketsphinx": "assistant.asr.pocketsphinx"}
"""A setting's value → the module whose `open_asr()` makes it. A new engine is one file and one row here; `auto` takes
the first that runs on this machine. A fetched streaming size comes before all of them, if it keeps up."""
FOLDERS = {"Moonshine streaming": streaming, "Whisper for CTranslate2": whisper}
"""What a folder may hold → the module that opens it, told by the module's `FILES`. A new layout is one row here."""


def open_asr(asked: str, report: Callable[[str], None] = lambda line: None, fetched: Sequence[Path] = ()) -> ASR:
    """Ears, warm: of a kind, `auto`, or a folder of a model. Takes seconds; call it off the event loop.

    Raises SettingError for what cannot be opened; `auto` passes it over and reports why. `fetched`: the folders that
    `auto` may take, the best first.
    """
    if asked == AUTO:
        return _best(fetched, report)
    folder = Path(asked).expanduser()
    if asked not in KINDS and not folder.is_dir():
        known = ", ".join((AUTO, *KINDS))
        raise SettingError(f"asr: there is no engine and no folder {asked!r}; known: {known}, or a model's folder")
    try:
        if asked in KINDS:
            found: ASR = import_module(KINDS[asked]).open_asr()
        else:
            found = _layout(folder).open_asr(folder)
    except ImportError as error:
        extra = "whisper" if asked not in KINDS and _layout(folder) is whisper else "ears"
        raise SettingError(
            f"--asr {asked} needs a package that is not here ({error.name}); pip install 'voice-assistant[{extra}]'"
        ) from error
    return found


def _layout(folder: Path) -> ModuleType:
    """The module that opens such a folder: the one whose files are all there. Raises SettingError."""
    lacking = {}
    for name, module in FOLDERS.items():
        missing = [file for file in module.FILES if not (folder / file).is_file()]
        if not missing:
            return module
        lacking[f"{name} needs {', '.join(module.FILES)}"] = missing
    told = "; ".join(f"{needs} (missing: {', '.join(missing)})" for needs, missing in lacking.items())
    raise SettingError(f"{folder} holds no ears: {told}. `assistant pull ears` fetches the first")


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

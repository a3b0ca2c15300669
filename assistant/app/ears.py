"""Which ears a setting opens: here, the fetched sizes included, or on a server. Loads no other model.

The sizes that can be fetched are Moonshine's streaming ones (MIT for English), each a folder of one repository that
holds many.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from assistant.app.config import Config, Profile
from assistant.app.hub import RepoPart, is_present, model_folder
from assistant.app.places import local_path
from assistant.app.standing import PartSlot, StandingEars, stamps
from assistant.asr import AUTO, module_of, open_asr
from assistant.asr.local import LocalASR
from assistant.asr.paced import Paced
from assistant.asr.streaming import FILES, WORD_TIMES, Size, name_of
from assistant.contracts import ASR, Rescorer
from assistant.llm.small import SmallMind, small_mind
from assistant.remote import RemoteFollower, TranscriptionServer, is_address, read_address

REPO = "moonshine-ai/moonshine-voice-assets"
SIZES: tuple[Size, ...] = ("medium", "small", "tiny")
"""The best first."""
LAPTOP, DESKTOP = SIZES[1], SIZES[0]
"""Sizes that are fetched by default: by themselves, and with models that need a desktop's GPU."""
LICENCE = "MIT"

@dataclass(frozen=True)
class WarmingEars:
    """The ears, once they are warm, and the small mind that answers what they hear; None where another model does."""

    asr: asyncio.Future[ASR]
    mind: SmallMind | None


def part_of(size: Size, word_times: bool = False) -> RepoPart:
    """A size's files in the repository. `word_times`: with the second decoder, which knows when each word was said."""
    needed = (*FILES, WORD_TIMES) if word_times else FILES
    return RepoPart(f"model/{size}-streaming-en/quantized_26_07_30", (*needed, "LICENSE*"), needed)


def ears_folder(models: Path, size: Size) -> Path:
    return model_folder(models, REPO, size)


def fetched_sizes(models: Path) -> list[Size]:
    """Those on this machine, the best first."""
    return [size for size in SIZES if is_present(ears_folder(models, size))]


def worth_fetching(taken: str, here: Sequence[Size]) -> Size | None:
    """The size that may serve better than the ears that `auto` took: one larger than what keeps up, one smaller than
    what does not."""
    if not here:
        return LAPTOP
    keeping_up = [SIZES.index(size) for size in here if taken == name_of(size)]
    wanted = min(keeping_up) - 1 if keeping_up else SIZES.index(here[-1]) + 1
    return SIZES[wanted] if 0 <= wanted < len(SIZES) and SIZES[wanted] not in here else None


def check_ears(config: Config) -> None:
    """Raises SettingError for ears that cannot be, before anything is loaded."""
    if is_address(config.asr):
        read_address(config.asr)
    elif config.asr != AUTO:
        module_of(config.asr)


def begin_hearing(
    config: Config, profile: Profile, stack: AsyncExitStack, report: Callable[[str], None], slot: PartSlot[StandingEars]
) -> WarmingEars:
    """`open_ears` on a thread of its own, waited for before `stack` is left; those in the slot stay. Raises
    SettingError."""
    check_ears(config)
    mind = small_mind(local_path(config, "llm", profile.llm))
    asr = asyncio.ensure_future(asyncio.to_thread(_standing_ears, config, report, mind, slot))
    stack.push_async_callback(asyncio.wait, [asr])
    return WarmingEars(asr, mind)


def _standing_ears(
    config: Config, report: Callable[[str], None], mind: SmallMind | None, slot: PartSlot[StandingEars]
) -> ASR:
    """Those in the slot, advised by whichever mind answers now, or opened and put there."""
    rescorer = mind.rescorer if mind else None
    here = [ears_folder(config.models, size) for size in fetched_sizes(config.models)]
    named = Path(config.asr).expanduser()
    facts = config.asr, *(stamps(folder) for folder in [*here, *([named] if named.is_dir() else [])])
    stands = slot.made_of(facts)
    if stands is None:
        asr = open_ears(config, report, rescorer)
    else:
        asr = stands.asr if stands.mind == mind else stands.asr.advised_by(rescorer)
    slot.fill(facts, StandingEars(asr, mind))
    return asr


def open_ears(
    config: Config, report: Callable[[str], None] = lambda line: None, rescorer: Callable[[], Rescorer] | None = None
) -> LocalASR:
    """The ears that the settings name, warm. Takes seconds; call it off the event loop. `rescorer`: see `open_asr`.

    Raises SettingError, and EngineFailed for a server that does not answer.
    """
    if is_address(config.asr):
        server = TranscriptionServer(read_address(config.asr))
        server.rehearse()
        report(f"hearing runs at {config.asr}; it answered in {server.took_s * 1000:.0f} ms")
        return LocalASR(server.facts, lambda: Paced(RemoteFollower(server)))
    fetched = [ears_folder(config.models, size) for size in fetched_sizes(config.models)]
    return open_asr(config.asr, report, fetched, rescorer)

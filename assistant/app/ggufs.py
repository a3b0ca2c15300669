"""Which GGUF file of a repository is fetched: one file, of a quantisation that is read and fits. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

SUFFIX = ".gguf"
READ = (
    "Q4_K_M", "Q4_K_S", "Q4_1", "Q4_0", "Q5_K_M", "Q5_K_S", "Q5_1", "Q5_0", "Q6_K", "Q6_K_L", "Q8_0", "BF16", "F16",
    "F32",
)  # fmt: skip
"""In the order of preference: four bits are kept and read fastest, and K types lose the least of them."""
SMALL_BYTES = 1 << 30
"""A model of so few bytes is fast in any form, and rounding does it more harm."""
BESIDE_BYTES = 3 << 29
"""Memory beside the file: the cache of a talk, ears and voice."""
_NAMED = re.compile(r"(?:^|[-._])((?:UD-)?(?:I?Q\d\w*|BF16|F16|F32))$", re.IGNORECASE)
_PART = re.compile(r"-\d{5}-of-\d{5}$")


def quantisation(file: str) -> str:
    """As the end of a file's name has it: Q4_K_M, UD-Q4_K_XL; empty if it says nothing."""
    found = _NAMED.search(_PART.sub("", PurePosixPath(file).stem))
    return found[1].upper() if found else ""


def gguf_file(sizes: Mapping[str, int], wanted: str, free_bytes: int) -> str:
    """The file to fetch among all files of a repository, by their sizes. Raises ValueError with a reason.

    wanted  the quantisation that was named; empty: the first of READ that fits, or Q8_0 if that is small
    """
    ours = {name: size for name, size in sizes.items() if name.lower().endswith(SUFFIX) and not _beside(name)}
    single = (name for name in ours if "/" not in name and not _PART.search(PurePosixPath(name).stem))
    whole = {quantisation(name): name for name in single}
    if wanted:
        return _named(wanted.upper(), ours, whole)
    if len(whole) == 1 and not (set(whole) - {""}):
        return whole[""]  # its name says nothing
    known = [one for one in READ if one in whole]
    if not known:
        raise ValueError(_none(ours, whole))
    if "Q8_0" in known and sizes[whole["Q8_0"]] < SMALL_BYTES:
        known.insert(0, "Q8_0")
    fitting = [one for one in known if sizes[whole[one]] + BESIDE_BYTES <= free_bytes]
    if not fitting:
        least = min(known, key=lambda one: sizes[whole[one]])
        need = (sizes[whole[least]] + BESIDE_BYTES) / 1e9
        raise ValueError(
            f"even {least} needs {need:.1f} GB of memory, and {free_bytes / 1e9:.1f} GB are free; add :{least} to "
            "fetch it all the same"
        )
    return whole[fitting[0]]


def _named(wanted: str, ours: Mapping[str, int], whole: Mapping[str, str]) -> str:
    if wanted in whole:
        if wanted.removeprefix("UD-").startswith(("IQ", "Q1", "Q2", "Q3")):
            raise ValueError(f"{wanted} is not read; {_choice(whole)}")
        return whole[wanted]
    if wanted in map(quantisation, ours):
        raise ValueError(f"{wanted} is cut into several files, which are not read; {_choice(whole)}")
    raise ValueError(f"there is no {wanted}; {_choice(whole)}")


def _none(ours: Mapping[str, int], whole: Mapping[str, str]) -> str:
    if ours and not whole:
        return "its GGUF files are cut into parts, which are not read; take a repository with a single file"
    names = ", ".join(sorted(filter(None, whole))) or "files whose names do not say how they are quantised"
    return f"it has {names}, and none of these is taken by itself; Q4_K_M is read best"


def _choice(whole: Mapping[str, str]) -> str:
    known = [one for one in READ if one in whole]
    return f"choose from {', '.join(known)}" if known else "choose another repository"


def _beside(name: str) -> bool:
    """Vision and drafts lie beside a model."""
    return PurePosixPath(name).name.lower().startswith(("mmproj", "mtp-"))

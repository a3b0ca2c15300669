"""Judges ears on people: word errors by source and condition, with their uncertainty, for any recogniser.

A recogniser (`ears`) is a callable from sound to text. Both texts pass whisper's English normaliser (package
whisper-normalizer: contractions opened, numbers as digits, British spelling, punctuation and fillers removed), so an
engine may write "25 min" or "twenty-five minutes" as it likes; the product must not.

words wrong   substitutions, deletions and insertions over the words that were said, summed over utterances
±             one standard error: utterances drawn again with replacement, 1,000 times. It does not know speakers:
              if one person speaks a whole source, it shows how certain the figure is for that person.
empty         share of utterances without a single word in the result
ms            the median call: processor time of all its threads, which is valid on a busy machine, and wall time

Run:  python -m recipes.asr.score --people DIR --voices DIR --ears used:moonshine,words:moonshine --json FILE
      (extra `judge`; `used` and `words` take every value of the product's setting `asr`; `whisper` stands alone)
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from recipes.asr import people, voices
from recipes.asr.ears import EARS, Recognise, Sound, around
from recipes.asr.noise import Spoil, conditions

DRAWS = 1_000
HUMAN = ("prompts", "short", "others")
SPOKEN = ("requests", "open")


@dataclass(frozen=True, slots=True)
class Clip:
    """One recording and its words."""

    name: str
    source: str
    text: str
    sound: Sound


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of a recogniser for a clip. `errors` counts words."""

    name: str
    source: str
    said: str
    heard: str
    words: int
    substituted: int
    deleted: int
    inserted: int
    cpu_ms: float = 0.0
    wall_ms: float = 0.0

    @property
    def errors(self) -> int:
        return self.substituted + self.deleted + self.inserted

    @property
    def empty(self) -> bool:
        return not self.heard


@dataclass(frozen=True, slots=True)
class Score:
    """One cell of the table; shares in percent."""

    n: int
    words: int
    wrong: float
    error: float
    substituted: float
    deleted: float
    inserted: float
    empty: float
    cpu_ms: float
    wall_ms: float


@cache
def normaliser() -> Any:
    from whisper_normalizer.english import EnglishTextNormalizer

    return EnglishTextNormalizer()


def alignment(said: Sequence[str], heard: Sequence[str]) -> tuple[int, int, int]:
    """Substitutions, deletions and insertions of the cheapest way from one row of words to the other."""
    row = [(j, 0, 0, j) for j in range(len(heard) + 1)]
    for i, wanted in enumerate(said, 1):
        diagonal, row[0] = row[0], (i, 0, i, 0)
        for j, got in enumerate(heard, 1):
            above, left, wrong = row[j], row[j - 1], int(wanted != got)
            ways = [
                (diagonal[0] + wrong, diagonal[1] + wrong, diagonal[2], diagonal[3]),
                (above[0] + 1, above[1], above[2] + 1, above[3]),
                (left[0] + 1, left[1], left[2], left[3] + 1),
            ]
            diagonal, row[j] = above, min(ways, key=lambda way: way[0])
    return row[-1][1:]


def judged(clip: Clip, sound: Sound, recognise: Recognise) -> Judged:
    """One clip, distorted or not, through one recogniser."""
    began, used = time.perf_counter(), time.process_time()
    raw = recognise(sound)
    cpu_ms, wall_ms = (time.process_time() - used) * 1e3, (time.perf_counter() - began) * 1e3
    said, heard = normaliser()(clip.text).split(), normaliser()(raw).split()
    return Judged(
        clip.name, clip.source, " ".join(said), " ".join(heard), len(said), *alignment(said, heard), cpu_ms, wall_ms
    )


def spread(errors: Sequence[int], words: Sequence[int]) -> float:
    """One standard error of the share of wrong words, from the errors of each utterance."""
    draw = np.random.default_rng(0).integers(0, len(words), size=(DRAWS, len(words)))
    return float(np.std(np.array(errors)[draw].sum(axis=1) / np.array(words)[draw].sum(axis=1)))


def summed(rows: Sequence[Judged]) -> Score:
    """The figures of a group."""
    errors, words = [row.errors for row in rows], [row.words for row in rows]

    def share(kind: str) -> float:
        return round(100 * sum(getattr(row, kind) for row in rows) / sum(words), 2)

    return Score(
        n=len(rows),
        words=sum(words),
        wrong=share("errors"),
        error=round(100 * spread(errors, words), 2),
        substituted=share("substituted"),
        deleted=share("deleted"),
        inserted=share("inserted"),
        empty=round(100 * sum(row.empty for row in rows) / len(rows), 1),
        cpu_ms=round(float(np.median([row.cpu_ms for row in rows])), 1),
        wall_ms=round(float(np.median([row.wall_ms for row in rows])), 1),
    )


def by_source(rows: Iterable[Judged]) -> dict[str, Score]:
    """`people` is the sum of all human speech; synthetic voices are separate."""
    groups: dict[str, list[Judged]] = defaultdict(list)
    for row in rows:
        groups[row.source].append(row)
        if row.source in HUMAN:
            groups["people"].append(row)
    return {source: summed(group) for source, group in groups.items()}


def human_clips(folder: Path) -> list[Clip]:
    """The clips that `people` gathered in this folder."""
    return [
        Clip(row.name, row.source, row.transcript, soundfile.read(path, dtype="float32")[0])
        for row in people.read_list()
        if (path := folder / f"{row.name}.wav").exists()
    ]


def synthetic_clips(folder: Path, groups: Iterable[str] = SPOKEN) -> list[Clip]:
    """Clips in human-like synthetic voices; missing ones are made."""
    return [
        Clip(name, group, text, sound)
        for group in groups
        for voice in voices.JUDGES
        for name, text, sound in voices.spoken(folder, voice, group)
    ]


def every(clips: Sequence[Clip], step: int) -> list[Clip]:
    """Every N-th clip of each source."""
    sources = dict.fromkeys(clip.source for clip in clips)
    return [clip for source in sources for clip in [c for c in clips if c.source == source][::step]]


def judge(
    clips: Sequence[Clip], ears: Sequence[str], spoil: dict[str, Spoil], path: Path | None, show: bool
) -> dict[str, dict[str, dict[str, Score]]]:
    """By ears, condition and source; existing content of `path` stays, and the file is written after each condition."""
    results: dict[str, dict[str, dict[str, Score]]] = defaultdict(dict)
    for name in ears:
        kind, _, asr = name.partition(":")
        recognise = EARS[kind](asr)
        for condition, spoiled in spoil.items():
            rows = [judged(clip, spoiled(around(clip.sound), i), recognise) for i, clip in enumerate(clips)]
            results[name][condition] = by_source(rows)
            for row in rows:
                if show and row.errors:
                    print(f"   {row.name}: {row.said} | {row.heard}")
            print(f"{name}, {condition}: {summed(rows)}", flush=True)
            if path is not None:
                save(path, name, condition, results[name][condition])
    return dict(results)


def save(path: Path, ears: str, condition: str, scores: dict[str, Score]) -> None:
    """Add to the existing file: an interrupted run was not for nothing, and runs may be combined."""
    held = json.loads(path.read_text()) if path.exists() else {}
    held.setdefault(ears, {}).setdefault(condition, {}).update({name: asdict(score) for name, score in scores.items()})
    path.write_text(json.dumps(held, indent=1) + "\n")


def table(results: dict[str, dict[str, dict[str, Score]]]) -> str:
    """Markdown: a row per ears and condition, a column per source."""
    order = [*HUMAN, "people", *SPOKEN]
    there = {source for conditions in results.values() for cells in conditions.values() for source in cells}
    sources = [source for source in order if source in there]
    lines = [f"| words wrong, % | condition | {' | '.join(sources)} | n, words | S, D, I | empty | ms cpu, wall |"]
    lines.append("|---" * (len(sources) + 6) + "|")
    for name, held in results.items():
        for condition, cells in held.items():
            figures = [f"{c.wrong:.1f} ± {c.error:.1f}" if (c := cells.get(s)) else "–" for s in sources]
            whole = cells.get("people") or next(iter(cells.values()))
            kinds = f"{whole.substituted:.1f}, {whole.deleted:.1f}, {whole.inserted:.1f}"
            rest = f"{whole.n}, {whole.words} | {kinds} | {whole.empty:.0f} % | {whole.cpu_ms:.0f}, {whole.wall_ms:.0f}"
            lines.append(f"| {name} | {condition} | {' | '.join(figures)} | {rest} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=Path, required=True, help="the folder of recipes.asr.people")
    parser.add_argument("--voices", type=Path, help="the folder of recipes.asr.voices (default: people only)")
    parser.add_argument("--ears", default="used:auto", help=f"comma-separated, from {', '.join(EARS)}")
    parser.add_argument("--conditions", default="clean", help="comma-separated, or all")
    parser.add_argument("--sources", default="", help="comma-separated (default: all)")
    parser.add_argument("--every", type=int, default=1, help="use every N-th clip of each source, for a quick look")
    parser.add_argument("--json", type=Path, help="add the figures to this file")
    parser.add_argument("--show", action="store_true", help="print the words said and heard if they differ")
    args = parser.parse_args()
    human = human_clips(args.people)
    spoil = conditions([clip.sound for clip in human])
    if args.conditions != "all":
        spoil = {name: spoil[name] for name in args.conditions.split(",")}
    clips = every(human + (synthetic_clips(args.voices) if args.voices else []), args.every)
    if args.sources:
        clips = [clip for clip in clips if clip.source in args.sources.split(",")]
    print(table(judge(clips, args.ears.split(","), spoil, args.json, args.show)))


if __name__ == "__main__":
    main()

"""Turns ended too early, against the wait after complete ones: `python -m benchmarks.turn_ends --work DIR`.

The sets of `recipes.turns` (make them with `python -m recipes.turns.sounds --cache DIR/sound`), the product's detector,
ears and language model, and its own decision, replayed over them in the time of the sound. The models' judgements of
each pause are stored in DIR, so trying another rule costs nothing. The words of a pause arrive `--words-ms` after it
was noticed, a setting that `python -m benchmarks.asr` measures. So no figure here depends on how busy the machine is.

    wait       from the last sample of a complete request to the moment in which its turn is certain, ms
    cut        share of the requests with a pause inside whose turn was certain before they were over
    reopened   share of these taken back when the user goes on: the answer is to the whole, a little later
    lost       share answered before the request was whole: cut and not reopened

`--smart-turn FOLDER` also asks smart-turn v3.2 (BSD-2), an acoustic model, at every pause: the folder smart_turn of an
unpacked wheel of pipecat-ai 1.14.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnxruntime

from assistant.app.config import load_config
from assistant.app.start import open_talks
from assistant.asr.detector import SileroDetector
from assistant.asr.moonshine import load_moonshine, moonshine
from assistant.contracts import Line, Prompt, StatefulLLM, Transcriber
from assistant.events import Pcm, SemanticVad, ServerVad
from assistant.talk.turn_end import Sign, TurnDetector, WordsSoFar, heard_words
from assistant.talk.turn_taking import LITTLE_S, REOPEN_S
from assistant.text.english import ENGLISH
from recipes.turns.sounds import RATE, Studio, Take, requests
from recipes.turns.texts import Part

BLOCK = 512
PADDING = RATE * 3 // 10
NEVER = ServerVad(silence_duration_ms=60_000)
FIRST_SOUND_MS = 85.0
"""From a certain turn to the first sound if nothing was prepared: benchmarks/results/turns_cpu.json."""
PARTS: tuple[Part, ...] = ("dev", "test")

Words: TypeAlias = Callable[["Pause"], WordsSoFar]


@dataclass(slots=True)
class Pause:
    """A fall of the voice or a silence, and the models' judgement of the sound before. `at`: when it was noticed."""

    at: int
    text: str
    complete: float | None
    acoustic: float | None = None


@dataclass(slots=True)
class HeardRequest:
    """A request as the models saw it. `speech`: probability of each block, `power`: its mean square."""

    name: str
    kind: str
    text: str
    parts: list[tuple[int, int]]
    speech: list[float]
    power: list[float]
    pauses: list[Pause] = field(default_factory=list)


# ------------------------------------------------------------------------------------------------ the models asked


class SmartTurn:
    """Probability that a turn is over, from its last 8 s of sound."""

    def __init__(self, folder: Path) -> None:
        spec = importlib.util.spec_from_file_location("whisper_features", folder / "_whisper_features.py")
        assert spec is not None and spec.loader is not None
        features = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(features)
        self._features = features.compute_whisper_log_mel_features
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(folder / "data" / "smart-turn-v3.2-cpu.onnx"), options)

    def __call__(self, sound: Pcm) -> float:
        last = np.pad(sound[-8 * RATE :], (max(0, 8 * RATE - sound.size), 0))
        [found] = self._session.run(None, {"input_features": self._features(last, do_normalize=True)[None]})
        return round(float(np.asarray(found).ravel()[0]), 4)


async def ask(
    take: Take, ears: Transcriber, llm: StatefulLLM, prompt: Prompt, acoustic: SmartTurn | None
) -> HeardRequest:
    """Every fall and pause of a request, read and judged; a silence after a fall holds no more words."""
    blocks = SileroDetector().push(take.sound)
    speech = [round(block.probability, 4) for block in blocks]
    power = [float(f"{np.mean(np.square(block.sound)):.4g}") for block in blocks]
    row = HeardRequest(take.name, take.kind, take.text, [*take.parts], speech, power)
    turns, begin, read = TurnDetector(NEVER, RATE), 0, 0
    for probability, loud in zip(speech, power, strict=True):
        sign = turns.step(probability, BLOCK, loud)
        if sign is Sign.ONSET:
            begin = max(0, turns.start_sample - PADDING)
        if turns.fall > read:
            read = turns.fall
            ears.reset()
            ears.push(take.sound[begin : turns.position])
            text = ears.pause().text
            asked = Prompt(prompt.system, prompt.tools, (Line("user", text),))
            complete = await llm.turn_end_probability("judged", asked) if text else None
            heard = acoustic(take.sound[begin : turns.position]) if acoustic else None
            row.pauses.append(Pause(turns.position, text, complete, heard))
    return row


async def gather(takes: Iterable[Take], kept: Path, acoustic: SmartTurn | None) -> list[HeardRequest]:
    """All rows; those already in `kept` are not computed again."""
    rows = {row.name: row for row in read(kept)}
    ears = moonshine(load_moonshine())
    async with open_talks(load_config({"profile": "tiny", "threads": "1"})) as app:
        prompt, llm = Prompt(app.personas["ada"].instructions, (), ()), app.models.llm.state
        assert llm is not None
        await llm.prepare("judged", prompt)
        with kept.open("a") as file:
            for take in takes:
                if take.name not in rows:
                    rows[take.name] = await ask(take, ears, llm, prompt, acoustic)
                    file.write(json.dumps(asdict(rows[take.name])) + "\n")
                    file.flush()
                    print(f"\r{len(rows)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return list(rows.values())


def read(kept: Path) -> list[HeardRequest]:
    lines = kept.read_text().splitlines() if kept.exists() else []
    rows = [HeardRequest(**json.loads(line)) for line in lines]
    for row in rows:
        row.pauses = [Pause(**pause) for pause in row.pauses]  # type: ignore[arg-type]  # as they come from JSON
    return rows


# ---------------------------------------------------------------------------------------------- the decision replayed


@dataclass(frozen=True, slots=True)
class Outcome:
    """`wait_ms` from the last sample; None for a turn that was cut. `reopened`: taken back when the user went on."""

    wait_ms: float | None = None
    reopened: bool = False

    @property
    def cut(self) -> bool:
        return self.wait_ms is None

    @property
    def lost(self) -> bool:
        return self.cut and not self.reopened


def replay(row: HeardRequest, detection: ServerVad | SemanticVad, words: Words, words_ms: float) -> Outcome:
    """One request under one rule."""
    turns = TurnDetector(detection, RATE)
    known: tuple[int, Pause] | None = None
    pauses = {pause.at: pause for pause in row.pauses}
    for probability, power in zip(row.speech, row.power, strict=True):
        if known is not None and turns.position >= known[0]:
            turns.know(words(known[1]))
            known = None
        sign = turns.step(probability, BLOCK, power)
        if sign is Sign.RESUMED:
            known = None
        if (pause := pauses.get(turns.position)) is not None:
            known = turns.position + round(words_ms * RATE / 1000), pause
        if sign is Sign.END:
            return outcome(row, turns)
    return Outcome((len(row.speech) * BLOCK - row.parts[-1][1]) * 1000 / RATE)


def outcome(row: HeardRequest, turns: TurnDetector) -> Outcome:
    end = turns.position
    on = next((i * BLOCK for i in range(end // BLOCK, len(row.speech)) if row.speech[i] >= turns.threshold), None)
    if on is None:
        return Outcome((end - row.parts[-1][1]) * 1000 / RATE)
    sounded_s = (on - end) / RATE - FIRST_SOUND_MS / 1000
    return Outcome(None, (on - turns.end_sample) / RATE <= REOPEN_S and sounded_s <= LITTLE_S)


def summary(
    rows: Sequence[HeardRequest], detection: ServerVad | SemanticVad, words: Words, words_ms: float
) -> dict[str, Any]:
    whole = [replay(row, detection, words, words_ms) for row in rows if row.kind == "complete"]
    paused = [replay(row, detection, words, words_ms) for row in rows if row.kind == "paused"]
    waits = [one.wait_ms for one in whole if one.wait_ms is not None]
    middle, ninety = (float(np.percentile(waits, share)) for share in (50, 90))
    cut = sum(one.cut for one in paused)
    return {
        "complete": len(whole), "paused": len(paused),
        "wait_ms_median": round(middle), "wait_ms_p90": round(ninety),
        "cut": round(cut / len(paused), 3),
        "reopened": round(sum(one.reopened for one in paused) / max(1, cut), 3),
        "lost": round(sum(one.lost for one in paused) / len(paused), 3),
        "complete_cut": round(sum(one.cut for one in whole) / len(whole), 3),
    }  # fmt: skip


def nothing(pause: Pause) -> WordsSoFar:
    return WordsSoFar()


def model_only(pause: Pause) -> WordsSoFar:
    return WordsSoFar(len(pause.text.split()), pause.complete)


def all_words(pause: Pause) -> WordsSoFar:
    return heard_words(pause.text, pause.complete, ENGLISH)


def sound_only(pause: Pause) -> WordsSoFar:
    """The acoustic model in place of the language model."""
    return WordsSoFar(len(pause.text.split()), pause.acoustic)


def words_and_sound(pause: Pause) -> WordsSoFar:
    """The mean of both models' odds, and open phrases."""
    if pause.acoustic is None or pause.complete is None:
        return all_words(pause)
    odds = [math.log((one + 1e-4) / (1 - one + 1e-4)) for one in (pause.complete, pause.acoustic)]
    return heard_words(pause.text, 1 / (1 + math.exp(-sum(odds) / 2)), ENGLISH)


RULES: dict[str, tuple[ServerVad | SemanticVad, Words]] = {
    **{f"silence {ms} ms": (ServerVad(silence_duration_ms=ms), nothing) for ms in (200, 300, 400, 500, 700, 900)},
    **{f"the language model, {name}": (SemanticVad(name), model_only) for name in ("high", "auto", "low")},
    **{f"and open phrases, {name}": (SemanticVad(name), all_words) for name in ("high", "auto", "low")},
}
ACOUSTIC: dict[str, tuple[SemanticVad, Words]] = {
    **{f"acoustic model alone, {name}": (SemanticVad(name), sound_only) for name in ("high", "auto", "low")},
    **{f"words and acoustic model, {name}": (SemanticVad(name), words_and_sound) for name in ("high", "auto", "low")},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--words-ms", type=float, default=85.0)
    parser.add_argument("--smart-turn", type=Path, metavar="FOLDER")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    acoustic = SmartTurn(args.smart_turn) if args.smart_turn else None
    studio, report = Studio(args.work / "sound"), {}
    for part in PARTS:
        rows = asyncio.run(gather(requests(studio, part), args.work / f"{part}.jsonl", acoustic))
        rules = RULES | ACOUSTIC if acoustic else RULES
        report[part] = {name: summary(rows, *rule, args.words_ms) for name, rule in rules.items()}
        print(f"{part:38}{'wait ms':>9}{'p90':>6}{'cut %':>7}{'lost %':>8}")
        for name, row in report[part].items():
            waits = f"{row['wait_ms_median']:>9}{row['wait_ms_p90']:>6}"
            print(f"  {name:36}{waits}{100 * row['cut']:>7.0f}{100 * row['lost']:>8.0f}")
    if args.json is not None:
        command = f"python -m benchmarks.turn_ends --work DIR --smart-turn FOLDER --words-ms {args.words_ms:.0f}"
        args.json.write_text(json.dumps({"command": command, **report}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Bytes of a parked talk, stored whole and as a delta on its persona, and the cost of storing and restoring it.

    python -m benchmarks.parked [--talks 12] [--out benchmarks/results/parked.json]

Two models: the shipped one, and random weights in a shape of 120 million; and the shipped voice. Each talk begins with
the shipped persona (small model), or with one of 1,100 tokens, has a few turns, and leaves the engine to the next.
Every returning state is compared with the one that left, byte by byte. Times are of the processor, over all threads,
and cover the copies alone. It takes two minutes, mostly for folding.
"""

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

import llm_engine
import tts_engine
from assistant.llm.language import load_language
from assistant.tts.voices import load_voices, voice_key
from benchmarks.reuse import LARGE, digest
from capsules import Budgets, Capsule, ExecContext, Registry, StateKey
from llm_engine import HybridLLM
from llm_engine.model import init_params
from llm_engine.weights import save_checkpoint
from tts_engine.engine import HiggsTTS

TINY = Path(llm_engine.__file__).parent / "tiny"
VOICE = Path(tts_engine.__file__).parent / "tiny"
LISTED, TALKS = StateKey("parked", salt="listed"), StateKey("parked")
SHORT = "You are Ada, a friendly voice assistant. Answer in one or two short sentences."
TURN = "What is the time in Lima, and when does the sun rise there tomorrow? Tell me in one sentence, please. "


def bytes_of(registry: Registry, key: str | None) -> dict[str, int]:
    assert key is not None
    return dict(registry.store.homes(key))


def measure_talks(engine: HybridLLM, folder: Path, persona: str, talks: int, place: Path) -> dict[str, object]:
    encode = load_language(folder).encode
    base, turn = encode(persona), encode(TURN)
    engine.reset()
    engine.append(base)
    start = engine.snapshot("persona")
    rows: dict[str, list[float]] = {name: [] for name in (
        "whole", "delta", "whole_disk", "delta_disk", "whole_put_ms", "delta_put_ms", "whole_back_ms", "delta_back_ms",
    )}  # fmt: skip
    equal = []
    registry = Registry.standard(engine._ctx, Budgets(1 << 31, 1 << 31, 1 << 32), time.time, place)
    registry.put(start, LISTED, name="persona", pin=True, save=True)
    for talk in range(talks):
        engine.restore(start)
        for _ in range(1 + talk % 6):
            engine.append(turn)
        state = digest(engine)
        for kind, bases in (("whole", ()), ("delta", (LISTED,))):
            name = f"talk {talk} {kind}"
            begin = time.process_time()
            key = registry.put(engine.snapshot(name), TALKS, name=name, bases=bases)
            rows[f"{kind}_put_ms"].append((time.process_time() - begin) * 1000)
            assert key is not None and registry.save(key)
            sizes = bytes_of(registry, key)
            rows[kind].append(sizes["host"])
            rows[f"{kind}_disk"].append(sizes["disk"])
            engine.reset()
            begin = time.process_time()
            found = registry.get(key)
            assert found is not None
            engine.restore(found)
            rows[f"{kind}_back_ms"].append((time.process_time() - begin) * 1000)
            equal.append(digest(engine) == state)
    return {"persona_tokens": len(base), "turns": [1 + n % 6 for n in range(talks)], **summary(rows), "equal": equal}


def summary(rows: dict[str, list[float]]) -> dict[str, object]:
    return {name: {"median": round(statistics.median(row), 3), "all": row} for name, row in rows.items()}


def measure_voice(place: Path) -> dict[str, object]:
    """For each voice: what it holds before it has said anything, and a talk of one spoken sentence."""
    engine = HiggsTTS.load(VOICE, ExecContext("cpu"))
    registry = Registry.standard(engine._ctx, Budgets(1 << 31, 1 << 31, 1 << 32), time.time, place)
    found: dict[str, object] = {}
    for name, voice in load_voices(engine, VOICE, registry).items():
        for _ in engine.speak("It is half past nine.", voice=voice):
            pass
        sizes = {}
        for kind, bases in (("whole", ()), ("delta", (voice_key(engine),))):
            sizes[kind] = bytes_of(registry, registry.put(_taken(engine), TALKS, name=f"{name} {kind}", bases=bases))
        found[name] = {kind: size["host"] for kind, size in sizes.items()}
    return found


def _taken(engine: HiggsTTS) -> Capsule:
    return engine.snapshot("talk")


def main(args: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--talks", type=int, default=12)
    parser.add_argument("--out", type=Path)
    told = parser.parse_args(args)
    torch.set_num_threads(1)
    results: dict[str, object] = {"threads": 1, "torch": torch.__version__}
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        engine = HybridLLM.load(TINY, ExecContext("cpu"), max_positions=4096)
        results["small"] = measure_talks(engine, TINY, SHORT, told.talks, place / "small")
        results["small, long persona"] = measure_talks(engine, TINY, SHORT * 62, told.talks, place / "long")
        results["voice"] = measure_voice(place / "voice")
        folder = place / "large"
        shutil.copytree(TINY, folder)
        save_checkpoint(folder, LARGE, init_params(LARGE, torch.Generator().manual_seed(1), deviation=0.02))
        engine = HybridLLM.load(folder, ExecContext("cpu"), max_positions=4096)
        results["120m"] = measure_talks(engine, folder, SHORT * 62, told.talks, place / "120m")
    text = json.dumps(results, indent=1)
    print(text, flush=True)
    if told.out is not None:
        told.out.write_text(text + "\n")


if __name__ == "__main__":
    main()

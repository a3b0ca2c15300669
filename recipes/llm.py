"""Trains the small language model with the engine's own network code, from nothing to `llm_engine/tiny/`.

    python -m recipes.llm train     a slice of under ten minutes; run it until it says done
    python -m recipes.llm export    writes the model directory from the latest checkpoint
    python -m recipes.score         scores it on phrasings and values that it never saw

`train --from DIRECTORY` starts a further run from an exported model: its tokenizer and weights, a fresh optimiser, and
talks that earlier runs did not see. From a model with fewer or narrower layers it grows a larger one, which at first
says the same as the small one.

Every step makes fresh talks from its own number, so a resumed run is the same run. The rate is constant and falls
linearly over the last `decay` steps. An exponential average of the weights is exported.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any, Final, TypeAlias

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F

from assistant.llm.small import WORDS
from llm_engine.config import FULL, LINEAR, LLMConfig
from llm_engine.model import forward_train, init_params
from llm_engine.weights import save_checkpoint
from recipes.chatml import TEMPLATE, TalkEncoder, tokenizer_config, train_tokenizer
from recipes.muon import Muon
from recipes.said import words_said

ROOT: Final = Path(__file__).parents[1]
WORK: Final = ROOT / ".training" / "llm"
TINY: Final = ROOT / "llm_engine" / "tiny"
TEXTS: Final = Path(__file__).parent / "texts"


Talks: TypeAlias = tuple[Tensor, Tensor]
"""Ids and weights [1, length] of one talk."""


@dataclass(frozen=True)
class Recipe:
    """Everything that determines the result."""

    seed: int = 20261120
    vocabulary: int = 2560
    tokens: int = 2048
    lengths: tuple[tuple[int, int], ...] = ((0, 512), (1000, 1024))
    """First step of each talk length; a step has `tokens`, or a few more."""
    steps: int = 1500
    decay: int = 400
    warm_up: int = 40
    matrix_rate: float = 0.02
    other_rate: float = 3e-3
    momentum: float = 0.95
    weight_decay: float = 0.02
    average: float = 0.99
    half: bool = False
    """Matrix products in bfloat16, 1.4 times as fast on a processor that has them."""
    declared: float = 0.0
    """Share of talks with tools that have to be read; such a talk is about half as long as the others."""
    written: float = 0.0
    """Share of talks whose lines were made up by hand."""


BLOCK: Final = (LINEAR, LINEAR, FULL)
OUTWARD: Final = ("out_proj.weight", "o_proj.weight", "down_proj.weight")
"""Everything that a layer adds to the stream goes through one of these."""


def config(vocabulary: int) -> LLMConfig:
    """The network: two linear layers and one full one, three times; 7.6 million parameters."""
    return LLMConfig(
        vocab_size=vocabulary,
        hidden_size=192,
        intermediate_size=1024,
        layer_types=BLOCK * 3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        linear_num_key_heads=4,
        linear_num_value_heads=4,
        linear_key_head_dim=32,
        linear_value_head_dim=64,
        rope_theta=10000.0,
        partial_rotary_factor=0.25,
        tie_word_embeddings=True,
    )


def place_layers(held: dict[str, Tensor], layers: int) -> dict[str, Tensor]:
    """A model's tensors, renamed for one of `layers` layers: the first block stays first, the rest goes to the top."""
    of = re.compile(r"(?<=model\.layers\.)\d+")
    fresh = layers - 1 - max(int(found[0]) for name in held if (found := of.search(name)))
    return {
        of.sub(lambda at: str(int(at[0]) + (fresh if int(at[0]) >= len(BLOCK) else 0)), name): tensor
        for name, tensor in held.items()
    }


def rate_factor(step: int, recipe: Recipe) -> float:
    """Warm-up, constant, linear fall to zero at the last step."""
    return min(1.0, (step + 1) / recipe.warm_up, max(0.0, (recipe.steps - step) / recipe.decay))


# ---------------------------------------------------------------------------------------------------- training


class Training:
    """The state of a run: parameters, their average, the optimiser, and how many steps are done."""

    def __init__(self, recipe: Recipe, tokenizer: Tokenizer, device: str = "cpu") -> None:
        self.recipe, self.device = recipe, device
        self.encoder = TalkEncoder(tokenizer)
        self.config = config(tokenizer.get_vocab_size())
        fresh = init_params(self.config, torch.Generator().manual_seed(recipe.seed))
        self.params = {name: p.to(device).requires_grad_() for name, p in fresh.items()}
        self.average = {name: p.detach().clone() for name, p in self.params.items()}
        matrices = [n for n, p in self.params.items() if p.dim() == 2 and "embed" not in n and p.shape[0] > 8]
        self.optimiser = Muon(
            [self.params[n] for n in matrices],
            [p for n, p in self.params.items() if n not in matrices],
            recipe.matrix_rate,
            recipe.other_rate,
            momentum=recipe.momentum,
            weight_decay=recipe.weight_decay,
            dtype=torch.bfloat16 if recipe.half else torch.float32,
        )
        self.done = 0
        self.tokens = 0
        self.seconds = 0.0
        self.begun_from = ""
        self.helper: Helper | None = None
        self.before: list[dict[str, Any]] = []
        self.plans: list[dict[str, Any]] = []

    def begin_from(self, directory: Path) -> None:
        """Load an exported model's weights, and the record of the runs that made it. Parts that a smaller one lacks add
        nothing yet: the grown model says the same as the small one."""
        held = place_layers(load_file(directory / "model.safetensors"), len(self.config.layer_types))
        with torch.no_grad():
            for name, p in self.params.items():
                small = held.get(name, p[:0])
                if small.shape != p.shape and name.endswith(OUTWARD):
                    p.zero_()
                p[tuple(map(slice, small.shape))].copy_(small)
                self.average[name].copy_(p)
        self.begun_from = digest(directory / "model.safetensors")
        self.before = runs_before(directory)

    def note_plan(self) -> None:
        """Record the numbers and texts that are used from this step on, if they are new."""
        now = {"steps": self.recipe.steps, "decay": self.recipe.decay, "texts": digest(*sorted(TEXTS.iterdir()))[:12]}
        for share in ("declared", "written"):
            if getattr(self.recipe, share):
                now[share] = getattr(self.recipe, share)
        if not self.plans or self.plans[-1] != {"step": self.plans[-1]["step"], **now}:
            self.plans.append({"step": self.done, **now})

    def record(self) -> dict[str, Any]:
        """A record of this run."""
        return {
            "begun from": self.begun_from,
            "recipe": asdict(self.recipe),
            "plans": self.plans,
            "steps": self.done,
            "tokens": self.tokens,
            "seconds": round(self.seconds),
        }

    def batch(self, step: int) -> list[tuple[Tensor, Tensor]]:
        """The talks of one step: ids and weights [1, length] of each."""
        rng = random.Random(f"{self.recipe.seed} {step}")
        length = max((start, rows) for start, rows in self.recipe.lengths if start <= step)[1]
        its = self.recipe
        talks = self.encoder.step(rng, its.tokens, length, declared=its.declared, written=its.written)
        return [(torch.tensor([ids], device=self.device), torch.tensor([w], device=self.device)) for ids, w in talks]

    def loss(self, ids: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """For one talk: the losses of the tokens that have a weight, and these weights."""
        after = weights[:, 1:]
        wanted = after > 0
        with torch.autocast(self.device, torch.bfloat16, enabled=self.recipe.half):
            logits = forward_train(self.config, self.params, ids[:, :-1], wanted)
        return F.cross_entropy(logits.float(), ids[:, 1:][wanted], reduction="none"), after[wanted]

    def learn(self, talks: Iterable[Talks], total: float) -> tuple[float, list[Tensor]]:
        """Add the gradients of some talks, where `total` is the weight of all talks of the step; returns the weighted
        loss, and the losses of the replies' tokens."""
        loss, replies = 0.0, []
        for ids, weights in talks:
            losses, each = self.loss(torch.as_tensor(ids), torch.as_tensor(weights))
            part = (losses * each).sum() / total
            part.backward()
            loss += float(part.detach())
            replies.append(losses.detach()[each == 1.0])
        return loss, replies

    def step(self) -> tuple[float, float]:
        """One step; returns the weighted loss and the replies' loss before it."""
        started = time.perf_counter()
        talks = self.batch(self.done)
        total = float(sum(weights[:, 1:].sum() for _, weights in talks))
        if self.helper is None:
            loss, replies = self.learn(talks, total)
        else:
            loss, replies = self.helper.share(self, talks, total)
        self.optimiser.step(rate_factor(self.done, self.recipe))
        weight = min(1 - self.recipe.average, 1.0) if self.done > 100 else 1.0
        with torch.no_grad():
            for name, p in self.params.items():
                self.average[name].lerp_(p, weight)
        self.done += 1
        self.tokens += sum(ids.shape[1] - 1 for ids, _ in talks)
        self.seconds += time.perf_counter() - started
        return loss, float(torch.cat(replies).mean())

    def save(self, path: Path) -> None:
        """Save everything needed to continue, written aside and renamed."""
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_suffix(".new")
        torch.save(
            {
                "params": {n: p.detach() for n, p in self.params.items()},
                "average": self.average,
                "optimiser": self.optimiser.state(),
                "done": self.done,
                "tokens": self.tokens,
                "seconds": self.seconds,
                "begun from": self.begun_from,
                "plans": self.plans,
                "runs": [*self.before, self.record()],
            },
            aside,
        )
        aside.replace(path)

    def load(self, path: Path) -> None:
        """Continue from a checkpoint."""
        held: dict[str, Any] = torch.load(path, map_location=self.device, weights_only=True)
        with torch.no_grad():
            for name, p in self.params.items():
                p.copy_(held["params"][name])
                self.average[name].copy_(held["average"][name])
        self.optimiser.load(held["optimiser"])
        self.done, self.tokens, self.seconds = held["done"], held["tokens"], held["seconds"]
        self.begun_from, self.plans, self.before = held["begun from"], held["plans"], held["runs"][:-1]


# ----------------------------------------------------------------------------------------------- two processes


class Helper:
    """A second process for some of each step's talks: both take the longest remaining one until none is left. The sum
    of their gradients is that of one process alone, apart from the order of its terms."""

    def __init__(self, run: Training, tokenizer: Tokenizer) -> None:
        processes = get_context("spawn")
        steps, self._steps = processes.Pipe(duplex=False)
        self._talks, self._done = processes.SimpleQueue(), processes.SimpleQueue()
        self._gradients = {name: torch.zeros_like(p).share_memory_() for name, p in run.params.items()}
        shared = {name: p.detach().share_memory_() for name, p in run.params.items()}
        its = (run.recipe, tokenizer.to_str(), shared, self._gradients, steps, self._talks, self._done)
        self._process = processes.Process(target=_help, args=its, daemon=True)
        self._process.start()

    def share(self, run: Training, talks: list[Talks], total: float) -> tuple[float, list[Tensor]]:
        """As `Training.learn`."""
        self._steps.send(total)
        for ids, weights in sorted(talks, key=lambda talk: -talk[0].shape[1]):
            self._talks.put((ids.numpy(), weights.numpy()))  # as plain arrays: torch would open a file for each
        for _ in range(2):
            self._talks.put(None)
        loss, replies = run.learn(iter(self._talks.get, None), total)
        its_loss, its_replies = self._done.get()
        for name, p in run.params.items():
            p.grad = self._gradients[name].clone() if p.grad is None else p.grad.add_(self._gradients[name])
        return loss + its_loss, [*replies, torch.tensor(its_replies)]

    def end(self) -> None:
        """Returns when the process has ended."""
        self._steps.close()
        self._process.join()


def _help(
    recipe: Recipe,
    tokenizer: str,
    shared: dict[str, Tensor],
    gradients: dict[str, Tensor],
    steps: Connection,
    queued: SimpleQueue[Any],
    done: SimpleQueue[Any],
) -> None:
    """The helper's process: the talks of one step after the other, with the parameters that the run updates."""
    torch.set_num_threads(1)
    run = Training(recipe, Tokenizer.from_str(tokenizer))
    run.params = {name: p.requires_grad_() for name, p in shared.items()}
    while True:
        try:
            total = steps.recv()
        except EOFError:  # the run is over, however it ended
            return
        loss, replies = run.learn(iter(queued.get, None), total)
        for name, p in run.params.items():
            gradients[name].zero_() if p.grad is None else gradients[name].copy_(p.grad)
            p.grad = None
        done.put((loss, torch.cat([*replies, torch.zeros(0)]).tolist()))


def tokenizer_for(recipe: Recipe, work: Path = WORK, start: Path | None = None) -> Tokenizer:
    """The tokenizer of a run: made once, or that of the model from which it starts."""
    path = work / "tokenizer.json"
    if not path.exists():
        work.mkdir(parents=True, exist_ok=True)
        made = train_tokenizer(recipe.seed, size=recipe.vocabulary) if start is None else opened(start)
        made.save(str(path))
    return opened(work)


def digest(*files: Path) -> str:
    """The hash of some files' contents."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in files if path.is_file())).hexdigest()


def opened(directory: Path) -> Tokenizer:
    """The tokenizer of a directory."""
    return Tokenizer.from_file(str(directory / "tokenizer.json"))


def runs_before(start: Path | None) -> list[dict[str, Any]]:
    """The record of the runs that made an exported model; empty for a run from nothing."""
    if start is None:
        return []
    runs: list[dict[str, Any]] = json.loads((start / "training.json").read_text("utf-8"))["runs"]
    return runs


def train(
    recipe: Recipe,
    minutes: float,
    work: Path = WORK,
    device: str = "cpu",
    start: Path | None = None,
    processes: int = 1,
) -> bool:
    """Train for one slice. Returns whether all steps are done."""
    tokenizer = tokenizer_for(recipe, work, start)
    run = Training(recipe, tokenizer, device)
    checkpoint = work / "checkpoint.pt"
    if checkpoint.exists():
        run.load(checkpoint)
    elif start is not None:
        run.begin_from(start)
    run.note_plan()
    if processes == 2:
        run.helper = Helper(run, tokenizer)
    until = time.monotonic() + minutes * 60
    smooth: float | None = None
    said = time.monotonic()
    while run.done < recipe.steps and time.monotonic() < until:
        loss, replies = run.step()
        smooth = replies if smooth is None else 0.95 * smooth + 0.05 * replies
        if time.monotonic() - said > 20 or run.done <= 3:
            said = time.monotonic()
            print(
                f"step {run.done}/{recipe.steps}  loss {loss:.3f}  replies {smooth:.4f}  "
                f"{run.tokens / 1e6:.2f} M tokens  "
                f"{run.tokens / run.seconds:.0f} tokens/s  rate {rate_factor(run.done, recipe):.2f}",
                flush=True,
            )
        if run.done % 50 == 0:
            run.save(checkpoint)
    run.save(checkpoint)
    if run.helper is not None:
        run.helper.end()
    return run.done >= recipe.steps


def probe(tokenizer: Tokenizer) -> list[float]:
    """The losses of the first three steps on short rows, which a re-run must reproduce."""
    run = Training(Recipe(tokens=192, lengths=((0, 96),)), tokenizer)
    return [run.step()[0] for _ in range(3)]


# ------------------------------------------------------------------------------------------------------ export


def earlier_weights(path: Path, held: dict[str, Any]) -> tuple[int, dict[str, Tensor]]:
    """Step and averaged weights of a copy of this run's checkpoint, or step 0 and the model the run started from."""
    if path.is_dir():
        run = Training(Recipe(seed=held["runs"][-1]["recipe"]["seed"]), opened(path))
        run.begin_from(path)  # grown as at that time
        begun, step, weights = run.begun_from, 0, run.average
    else:
        before = torch.load(path, map_location="cpu", weights_only=True)
        begun, step, weights = before["begun from"], before["done"], before["average"]
    if begun != held["begun from"] or weights.keys() != held["average"].keys():
        raise SystemExit(
            f"{path} belongs to another run: name an earlier copy of this run's checkpoint.pt, or the directory "
            "of the model that it started from"
        )
    return step, weights


def export(work: Path = WORK, target: Path = TINY, earlier: Path | None = None, share: float = 0.5) -> None:
    """Write the model directory in the published layout, bfloat16: the averaged weights of the latest checkpoint, or
    their mean with earlier ones of the same run, which get this `share`."""
    held = torch.load(work / "checkpoint.pt", map_location="cpu", weights_only=True)
    if earlier is not None:
        step, before = earlier_weights(earlier, held)
        held["average"] = {name: torch.lerp(p, before[name], share) for name, p in held["average"].items()}
        held["runs"][-1]["mean of steps"] = [step, held["done"]]
        held["runs"][-1]["share of the first"] = share
    tokenizer = Tokenizer.from_file(str(work / "tokenizer.json"))
    target.mkdir(parents=True, exist_ok=True)
    save_checkpoint(target, config(tokenizer.get_vocab_size()), held["average"], dtype=torch.bfloat16)
    end, pad = tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")
    path = target / "config.json"
    raw = json.loads(path.read_text("utf-8"))
    raw |= {"max_position_embeddings": 4096, "eos_token_id": end, "pad_token_id": pad}
    path.write_text(json.dumps(raw, indent=2) + "\n", "utf-8")
    (target / "generation_config.json").write_text(
        json.dumps({"do_sample": False, "eos_token_id": [end, pad], "pad_token_id": pad}, indent=2) + "\n", "utf-8"
    )
    tokenizer.save(str(target / "tokenizer.json"))
    (target / "tokenizer_config.json").write_text(tokenizer_config() + "\n", "utf-8")
    (target / "chat_template.jinja").write_text(TEMPLATE, "utf-8")
    (target / WORDS).write_text("\n".join(words_said()) + "\n", "utf-8")
    torch.set_num_threads(1)
    record = {"runs": held["runs"], "first losses": probe(tokenizer)}
    (target / "training.json").write_text(json.dumps(record, indent=2) + "\n", "utf-8")
    print(f"wrote {target}: {held['done']} steps, {held['tokens'] / 1e6:.2f} M tokens")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    trains = commands.add_parser("train", help="train for one slice; run again to continue")
    trains.add_argument("--steps", type=int, default=Recipe.steps)
    trains.add_argument("--decay", type=int, default=Recipe.decay)
    trains.add_argument("--declared", type=float, default=Recipe.declared, help="share of talks with declared tools")
    trains.add_argument("--written", type=float, default=Recipe.written, help="share of talks made up by writers")
    trains.add_argument("--from", dest="start", type=Path, help="an exported model from which to start a further run")
    trains.add_argument("--minutes", type=float, default=9.0, help="length of the slice")
    trains.add_argument("--device", default="cpu")
    trains.add_argument("--work", type=Path, default=WORK, help="folder of the checkpoint")
    trains.add_argument("--threads", type=int, default=1)
    trains.add_argument("--processes", type=int, choices=(1, 2), default=1, help="two share the talks of each step")
    trains.add_argument("--half", action="store_true", help="matrix products in bfloat16")
    exports = commands.add_parser("export", help="write the model directory from the latest checkpoint")
    exports.add_argument("--work", type=Path, default=WORK, help="folder of the checkpoint")
    exports.add_argument("--target", type=Path, default=TINY)
    exports.add_argument(
        "--mean",
        type=Path,
        help="average with a copy of the checkpoint at an earlier step, or with the model it started from",
    )
    exports.add_argument("--share", type=float, default=0.5, help="weight of the model named by --mean")
    arguments = parser.parse_args()
    if arguments.command == "export":
        if not 0 <= arguments.share <= 1:
            parser.error(f"--share is {arguments.share}: give a part of the mean, from 0 to 1")
        export(arguments.work, arguments.target, arguments.mean, arguments.share)
        return
    torch.set_num_threads(arguments.threads)
    seed = Recipe.seed + len(runs_before(arguments.start))
    recipe = Recipe(
        seed=seed,
        steps=arguments.steps,
        decay=arguments.decay,
        half=arguments.half,
        declared=arguments.declared,
        written=arguments.written,
    )
    done = train(recipe, arguments.minutes, arguments.work, arguments.device, arguments.start, arguments.processes)
    print("done" if done else "slice over; run the same command again to continue", flush=True)


if __name__ == "__main__":
    main()

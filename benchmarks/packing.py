"""The cost of packing in agreement: the shipped language model in fewer bits beside float32, teacher-forced.

    python -m benchmarks.packing [--talks 40] [--kernels FOLDER] [--out benchmarks/results/packing.json]
    python -m benchmarks.packing --shape 0.8b [--tokens 256]

Talks of the split that training leaves out are folded token by token. At every token of a reply both choose: `same` is
how often their choices agree, `loss` the mean negative log-likelihood of the actual token, `divergence` the mean
Kullback-Leibler divergence from float32, in nats. Forty talks take about a minute on one thread. With `--shape` the
weights are random ones of a published shape, and so are the tokens: this shows the effect of rounding on an untrained
network of that depth, whose choices are nearly ties. Two threads and some minutes.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from benchmarks.llm import SHAPES, checkpoint
from capsules import ExecContext, Role
from llm_engine import HybridLLM
from llm_engine.options import MADE, LLMOptions
from llm_engine.weights import load_weights
from recipes.chatml import TalkEncoder
from recipes.score import talks_for

TINY = Path(__file__).parents[1] / "llm_engine" / "tiny"
FORMS = ("float32", "bfloat16", "int8", "int4", "float8", "int4 of a GPU")
"""The last two as a GPU holds them, multiplied by torch: its own kernels add only rounding."""

Talk = tuple[list[int], list[int]]
"""Tokens, and the places of those that belong to a reply."""


def tokens_of(count: int) -> list[Talk]:
    encoder = TalkEncoder(Tokenizer.from_file(str(TINY / "tokenizer.json")))
    found = []
    for talk in islice(talks_for(count), count):
        ids, places = list(encoder.system(talk)), []
        for turn in talk.turns:
            more, weights = encoder.turn(turn)
            places += [len(ids) + at for at, weight in enumerate(weights) if weight >= 1.0]
            ids += more
        found.append((ids[:1000], [at for at in places if at < 1000]))
    return found


def random_tokens(vocabulary: int, count: int) -> list[Talk]:
    ids = torch.randint(vocabulary, (count + 1,), generator=torch.Generator().manual_seed(1)).tolist()
    return [(ids, list(range(1, count + 1)))]


def opened(path: Path, form: str, ctx: ExecContext) -> HybridLLM:
    if not form.endswith("GPU"):
        return HybridLLM.load(path, ctx, form, 1100)
    loaded = load_weights(path, ctx, torch.bfloat16, made=MADE[form.partition(" ")[0]])
    llm = HybridLLM(ctx, loaded, LLMOptions("bfloat16", 1100), None)
    llm.warm()
    return llm


def choices(llm: HybridLLM, talks: Sequence[Talk]) -> Tensor:
    """Log-probabilities before every token of a reply: [n, V]."""
    rows = []
    for ids, places in talks:
        llm.reset()
        wanted = set(places)
        for at, token in enumerate(ids[:-1]):
            logits = llm.append([token])
            if at + 1 in wanted:
                rows.append(logits.log_softmax(-1))
    return torch.stack(rows)


def agreement(found: Tensor, exact: Tensor, targets: Tensor) -> dict[str, float]:
    """Agreement of log-probabilities [n, V] with those of float32, for the actual tokens `targets` [n]."""
    shares = exact.exp()
    apart = torch.where(shares > 0, exact - found, 0.0)  # both sides are -inf where nothing is ever drawn
    return {
        "n": len(found),
        "same": float((found.argmax(-1) == exact.argmax(-1)).float().mean()),
        "loss": float(-found.gather(1, targets[:, None]).mean()),
        "divergence": float((shares * apart).sum(-1).mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--talks", type=int, default=40)
    parser.add_argument("--shape", choices=SHAPES)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--kernels", type=Path, default=Path(tempfile.gettempdir()) / "llm-bench" / "kernels")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(2 if args.shape else 1)
    talks = random_tokens(SHAPES[args.shape].vocab_size, args.tokens) if args.shape else tokens_of(args.talks)
    path = checkpoint(Path(tempfile.gettempdir()) / "llm-bench", args.shape) if args.shape else TINY
    targets = torch.tensor([ids[at] for ids, places in talks for at in places])
    exact: Tensor | None = None
    rows = {}
    for form in FORMS[:4] if args.shape else FORMS:
        ctx = ExecContext("cpu", args.kernels)
        found = choices(opened(path, form, ctx), talks)
        exact = found if exact is None else exact
        weight_bytes = sum(buffer.nbytes for buffer in ctx.buffers("llm", Role.WEIGHT))
        rows[form] = {**agreement(found, exact, targets), "weight_bytes": weight_bytes}
        print(form, json.dumps(rows[form]), flush=True)
    if args.out:
        args.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Builds the hearing side's language model and dictionary from generated requests.

Run:  python -m recipes.hearing            (about a minute; writes assistant/asr/tiny/)

The language model is an interpolated Witten-Bell trigram over `requests.request`, the user's side of the talks that
the language model learns from and, if given, further files with one utterance per line. Pronunciations come from the
dictionary inside the pocketsphinx package (CMUdict, BSD).
"""

import argparse
import hashlib
import json
import math
import random
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from pocketsphinx import NGramModel, get_model_path

from recipes.requests import request
from recipes.texts import user_utterances

TINY = Path(__file__).parents[1] / "assistant" / "asr" / "tiny"
COMMON = 15  # a word must be in this many utterances of the talks
Gram = tuple[str, ...]


def count_grams(texts: Iterable[str]) -> list[Counter[Gram]]:
    """[unigrams, bigrams, trigrams] of the texts, with sentence marks."""
    counts: list[Counter[Gram]] = [Counter(), Counter(), Counter()]
    for text in texts:
        words = ["<s>", *text.split(), "</s>"]
        for n in (1, 2, 3):
            counts[n - 1].update(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
    return counts


def witten_bell(counts: list[Counter[Gram]]) -> tuple[dict[Gram, float], dict[Gram, float]]:
    """Interpolated Witten-Bell: probabilities of all seen n-grams and back-off weights of all histories."""
    total = sum(c for gram, c in counts[0].items() if gram != ("<s>",))
    probability: dict[Gram, float] = {g: c / total for g, c in counts[0].items()}
    probability[("<s>",)] = 1e-10
    backoff: dict[Gram, float] = {}
    for n in (2, 3):
        followers: dict[Gram, list[tuple[Gram, int]]] = defaultdict(list)
        for gram, count in counts[n - 1].items():
            followers[gram[:-1]].append((gram, count))
        for history, grams in followers.items():
            seen = sum(c for _, c in grams)
            share = len(grams) / (len(grams) + seen)
            for gram, count in grams:
                probability[gram] = (1 - share) * count / seen + share * probability.get(gram[1:], 1e-10)
            left = 1 - sum(probability[g] for g, _ in grams)
            lower = 1 - sum(probability[g[1:]] for g, _ in grams)
            backoff[history] = max(left, 1e-6) / max(lower, 1e-6)
    return probability, backoff


def write_arpa(counts: list[Counter[Gram]], path: Path) -> None:
    """The trigram in ARPA text."""
    probability, backoff = witten_bell(counts)
    lines = ["\\data\\", *(f"ngram {n}={len(counts[n - 1])}" for n in (1, 2, 3)), ""]
    for n in (1, 2, 3):
        lines.append(f"\\{n}-grams:")
        for gram in sorted(counts[n - 1]):
            line = f"{math.log10(max(probability[gram], 1e-10)):.4f}\t{' '.join(gram)}"
            if n < 3:
                line += f"\t{math.log10(backoff.get(gram, 1.0)):.4f}"
            lines.append(line)
        lines.append("")
    path.write_text("\n".join([*lines, "\\end\\", ""]))


def pronunciations() -> Mapping[str, list[str]]:
    """word -> its dictionary lines, alternatives included."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in Path(get_model_path("en-us/cmudict-en-us.dict")).read_text().splitlines():
        found[re.sub(r"\(\d+\)$", "", line.split(" ", 1)[0])].append(line)
    return found


def build(out: Path, utterances: int, seed: int, extra: list[str]) -> dict[str, object]:
    """Write words.lm, words.dict and facts.json into `out`; returns the facts."""
    rng = random.Random(seed)
    texts = [request(rng) for _ in range(utterances)] + extra
    certain = {w for t in texts for w in t.split()}
    talks = user_utterances(seed, utterances, "train")  # they contain made-up names, which are not words to listen for
    often = {w for w, n in Counter(w for t in talks for w in set(t.split())).items() if n >= COMMON}
    known = pronunciations()
    texts = [t for t in texts + talks if all(w in known and (w in certain or w in often) for w in t.split())]
    words = {w for t in texts for w in t.split()}
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        arpa = Path(folder) / "words.arpa"
        write_arpa(count_grams(texts), arpa)
        packed = Path(folder) / "words.lm.bin"
        NGramModel.readfile(str(arpa)).write(str(packed))
        (out / "words.lm").write_bytes(packed.read_bytes())
    (out / "words.dict").write_text("".join(f"{line}\n" for word in sorted(words) for line in known[word]))
    digest = hashlib.sha256((out / "words.lm").read_bytes()).hexdigest()
    facts: dict[str, object] = {
        "utterances": len(texts),
        "words": len(words),
        "seed": seed,
        "words.lm sha256": digest,
    }
    (out / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")
    return facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=TINY)
    parser.add_argument("--utterances", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--extra", type=Path, nargs="*", default=[], help="files with one utterance per line")
    args = parser.parse_args()
    extra = [line.strip().lower() for path in args.extra for line in path.read_text().splitlines() if line.strip()]
    print(json.dumps(build(args.out, args.utterances, args.seed, extra), indent=1))


if __name__ == "__main__":
    main()

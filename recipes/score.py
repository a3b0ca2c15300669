"""Scores the shipped language model through the engine, on phrasings and values that its training never saw.

    python -m recipes.score --talks 200        prints a table; writes scores.json and card.md beside the model
    python -m recipes.score --before DIRECTORY also puts another model's scores of this set into the card

Every reply is made from the true history and compared with the replies that count as right. A request is right in
*intent and format* if the right tool is called in a well-formed call, or if words are spoken where words are wanted;
*arguments* are right if the call is exact. Stories count if they are about the right hero (any, if none was asked for)
and end properly.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import torch
from tokenizers import Tokenizer

from assistant.text.written import as_written
from capsules import ExecContext
from llm_engine import HybridLLM
from recipes.chatml import TalkEncoder, parse_call
from recipes.judge import ReplyJudge, garbled, is_right, names_it, names_thing, refused, wanted_turn
from recipes.llm_card import TARGETS, write_card
from recipes.texts.scene import Talk, TalkTurn
from recipes.texts.scenes import FOLLOWING
from recipes.texts.scenes_declared import declared_talk
from recipes.texts.talks import make_talk
from recipes.texts.tools import PERSONAS, TOOL_NAMES
from recipes.texts.words import Split

TINY: Final = Path(__file__).parents[1] / "llm_engine" / "tiny"
OWN_WORDED: Final = {
    "own words": Path(__file__).with_name("own_worded.txt"),
    "own words, second set": Path(__file__).with_name("own_worded_second.txt"),
}
"""Requests that no text contains. The author of the second set, written later, had not read the texts."""
FOLLOW_UPS: Final = (
    "follow-up call", "last number", "go on counting", "fact asked", "repeat", "what you said", "story 2", "story 3",
    "story taken up", "story about",
)  # fmt: skip
GROUPS: Final = {"correction": "corrections", "recall": "recall", "chain": "chains", "list edit": "lists edited"}
"""Kinds with a row of their own in the table."""
UNSEEN: Final = {
    "call declared": "right call",
    "follow-up declared": "right call",
    "ask declared": "missing one asked for",
    "reply declared": "said from the result",
    "error declared": "said from the result",
    "refusal declared": "refusal names the thing",
}
"""The scored kinds of talks with unseen tools, and how each is counted."""


@dataclass(slots=True)
class Tally:
    """Right answers out of all, by name."""

    right: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    total: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    misses: list[tuple[str, str, str, str]] = field(default_factory=list)
    """Kind, the request, the wanted reply and the actual one."""

    def add(self, name: str, right: bool) -> None:
        self.total[name] += 1
        self.right[name] += right

    def add_all(self, other: Tally) -> None:
        for name, total in other.total.items():
            self.total[name] += total
            self.right[name] += other.right[name]
        self.misses += other.misses

    def rows(self) -> dict[str, dict[str, float]]:
        return {name: self.row(name) for name in sorted(self.total)}

    def row(self, name: str) -> dict[str, float]:
        """Share in percent, its standard error, and the number of cases."""
        n = self.total[name]
        share = self.right[name] / n
        return {"percent": round(100 * share, 1), "error": round(100 * (share * (1 - share) / n) ** 0.5, 1), "n": n}


def talks_for(count: int, seed: int = 99, split: Split = "test") -> Iterator[Talk]:
    """The talks of a score."""
    rng = random.Random(f"score {seed}")
    return (make_talk(rng, split, noise=0.1) for _ in range(count))


def following_for(count: int, seed: int = 99) -> Iterator[Talk]:
    """Talks that refer to an earlier turn or to things nobody told the model, two exchanges each."""
    rng = random.Random(f"following {seed}")
    return (make_talk(rng, "test", scenes=2, noise=0.1, among=FOLLOWING) for _ in range(count))


def place_of(turn: TalkTurn, talk: Talk) -> int:
    """The index of this turn in the talk; others may be equal to it."""
    return next(i for i, each in enumerate(talk.turns) if each is turn)


def score(path: Path, talks: int, seed: int = 99, following: int = 0) -> tuple[Tally, float]:
    """Tally over generated talks, and the decoding speed in tokens per second of processor time."""
    judge = ReplyJudge(path)
    tally = Tally()
    for talk in itertools.chain(talks_for(talks, seed), following_for(following, seed)):
        for turn, said in judge.replies(talk):
            at = place_of(turn, talk)
            asked = talk.turns[at - 1].text
            right = is_right(turn, said) or (turn.kind == "refusal" and refused(said, turn.text, asked))
            tally.add(turn.kind, right)
            tally.add("= garbled", garbled(said, " ".join(each.text for each in talk.turns[:at])))
            if turn.call:
                call = parse_call(said)
                tally.add("= intent and format", call is not None and call[0] == turn.call[0])
                if turn.call[1] and call is not None and call[0] == turn.call[0]:
                    tally.add("= arguments", call[1] == turn.call[1])
            else:
                tally.add("= intent and format", "<" not in said and not said.endswith("…"))
                tally.add("= spoken replies", right)
            if turn.kind in FOLLOW_UPS:
                tally.add("= follow-ups", right)
            if turn.kind in GROUPS:
                tally.add(f"= {GROUPS[turn.kind]}", right)
            if turn.kind == "refusal":
                tally.add("= refusals", right)
                tally.add("= refusals that name it", names_it(said, asked))
            if not right:
                tally.misses.append((turn.kind, asked, str(turn.call or turn.text), said))
    return tally, judge.tokens / max(judge.seconds, 1e-9)


def declared_talks_for(count: int, seed: int = 99) -> Iterator[Talk]:
    """The talks of a score whose tools have to be read: domains unseen in training."""
    rng = random.Random(f"declared {seed}")
    return (declared_talk(rng, "test", noise=0.1) for _ in range(count))


def score_declared(path: Path, talks: int, seed: int = 99) -> Tally:
    """Tally over talks with unseen tools. A refusal counts as one if nothing is called, and as right if it names the
    thing."""
    judge, tally = ReplyJudge(path), Tally()
    for talk in declared_talks_for(talks, seed):
        for turn, said in judge.replies(talk):
            asked = talk.turns[place_of(turn, talk) - 1].text
            right = is_right(turn, said) or (turn.kind == "refusal declared" and names_thing(said, turn.text, asked))
            if turn.call and not turn.kind.endswith(" declared"):
                tally.add("= unseen tools: built-in beside them", right)
            if turn.kind not in UNSEEN:
                continue
            tally.add(turn.kind, right)
            tally.add(f"= unseen tools: {UNSEEN[turn.kind]}", right)
            if turn.call:
                call = parse_call(said)
                tally.add("= unseen tools: right tool", call is not None and call[0] == turn.call[0])
            if turn.kind == "refusal declared":
                tally.add("= unseen tools: no call where none fits", "<" not in said and not said.endswith("…"))
            if not right:
                tally.misses.append((turn.kind, asked, str(turn.call or turn.text), said))
    return tally


def own_words(path: Path) -> Tally:
    """Tally over both sets of `OWN_WORDED`, each request as the first of a talk.

    A line is `what is said => tool argument=value; ...`, or `"a reply|another that counts"`, or the name of a pool of
    replies (`joke`), `story hero`, or `refuse thing|its other name`: a refusal that names it.
    """
    judge, tally = ReplyJudge(path), Tally()
    persona = next(iter(PERSONAS))
    lines = [(name, line) for name, held in OWN_WORDED.items() for line in held.read_text("utf-8").splitlines()]
    for name, line in lines:
        spoken, wanted = line.split(" => ")
        ask, reply = TalkTurn("user", as_written(spoken)), wanted_turn(wanted)
        said = next(said for _, said in judge.replies(Talk(PERSONAS[persona], TOOL_NAMES, [ask, reply])))
        right = is_right(reply, said)
        tally.add(f"= {name}", right)
        tally.add("= garbled", garbled(said, ask.text))
        if not right:
            tally.misses.append((name, ask.text, str(reply.call or reply.text), said))
    return tally


def turn_end(path: Path, requests: int, seed: int = 99) -> dict[str, float]:
    """How well the probability of the turn's end separates whole requests from those cut at a word before their end.

    `area` is the chance that a whole request gets a higher probability than a cut one (0.5 is none, 1 is always).
    """
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    encoder = TalkEncoder(tokenizer)
    llm = HybridLLM.load(path, ExecContext("cpu"), dtype="float32", max_positions=512)
    rng = random.Random(f"turn end {seed}")
    whole: list[float] = []
    cut: list[float] = []
    while len(whole) < requests:
        talk = make_talk(rng, "test", scenes=1, noise=0.0)
        words = talk.turns[0].text.split(" ")
        if talk.turns[0].role != "user" or len(words) < 4:
            continue
        llm.reset()
        llm.append(encoder.system(talk) + encoder.ids("<|im_start|>user\n"))
        whole.append(llm.turn_end_probability(encoder.ids(f" {' '.join(words)}")))
        part = " ".join(words[: rng.randint(1, len(words) - 1)])
        cut.append(llm.turn_end_probability(encoder.ids(f" {part}")))
    pairs = [(w > c) + 0.5 * (w == c) for w in whole for c in cut]
    best = max(
        (sum(w >= level for w in whole) + sum(c < level for c in cut), level)
        for level in [i / 100 for i in range(1, 100)]
    )
    return {
        "n": len(whole),
        "area": round(sum(pairs) / len(pairs), 3),
        "mean whole": round(sum(whole) / len(whole), 3),
        "mean cut": round(sum(cut) / len(cut), 3),
        "best level": best[1],
        "right at best level": round(best[0] / (2 * len(whole)), 3),
    }


def scores_before(directory: Path, scored: str) -> dict[str, float]:
    """The percentages in another model's scores.json. Raises ValueError if they belong to another set."""
    held = json.loads((directory / "scores.json").read_text("utf-8"))
    if held.get("set") != scored:
        raise ValueError(f"{directory} was scored on different talks; score it with --model and the same --talks")
    return {name: row["percent"] for name, row in held["scores"].items()}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--talks", type=int, default=200)
    parser.add_argument("--following", type=int, default=300, help="talks that refer to an earlier turn")
    parser.add_argument("--declared", type=int, default=150, help="talks with tools unseen in training")
    parser.add_argument("--requests", type=int, default=300, help="requests to score the probability of a turn's end")
    parser.add_argument("--seed", type=int, default=99, help="seed of the talks (default: the card's)")
    parser.add_argument("--model", type=Path, default=TINY)
    parser.add_argument("--misses", type=int, default=0, help="show this many wrong replies")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--before", type=Path, help="an earlier model's directory, scored on the same texts")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    seed, declared = arguments.seed, arguments.declared
    asked = [*talks_for(arguments.talks, seed), *following_for(arguments.following, seed)]
    asked += declared_talks_for(declared, seed)
    scored = hashlib.sha256(repr(asked).encode()).hexdigest()[:12]
    before = scores_before(arguments.before, scored) if arguments.before else {}
    tally, speed = score(arguments.model, arguments.talks, seed, arguments.following)
    ends = turn_end(arguments.model, arguments.requests)
    for more in (own_words(arguments.model), score_declared(arguments.model, declared, seed)):
        tally.add_all(more)
    rows = tally.rows()
    for name, row in rows.items():
        target = TARGETS.get(name.removeprefix("= "))
        share = f"{row['percent']:6.1f} ± {row['error']:<4.1f} %"
        print(f"{name:24s} {share}  n {row['n']:<5.0f}" + (f" target {target} %" if target else ""))
    print(f"turn end: {ends}")
    print(f"{speed:.0f} tokens per processor second, float32, {arguments.threads} thread(s)")
    for kind, request, wanted, said in random.Random(1).sample(tally.misses, min(arguments.misses, len(tally.misses))):
        print(f"MISS {kind}\n  asked  {request!r}\n  wanted {wanted!r}\n  said   {said!r}")
    if not arguments.dry:
        result = {
            "talks": arguments.talks,
            "following": arguments.following,
            "declared": declared,
            "set": scored,
            "scores": rows,
            "before": before,
            "turn end": ends,
            "tokens per second": round(speed),
            "threads": arguments.threads,
        }
        (arguments.model / "scores.json").write_text(json.dumps(result, indent=2) + "\n", "utf-8")
        write_card(arguments.model)


if __name__ == "__main__":
    main()

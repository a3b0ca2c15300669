"""Makes `texts/misheard.tsv` from pairs of words said and words heard.

    python -m recipes.misheard PAIRS.tsv        (two columns at least: said, heard; words in spoken form)

It holds the places where both differ in an otherwise equal utterance: the words, the words heard instead, and how
often. The texts use them where a request has those words, outside its slots, so that the model learns to answer what
was really said.
"""

from __future__ import annotations

import argparse
from collections import Counter
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final

TABLE: Final = Path(__file__).parent / "texts" / "misheard.tsv"
KEPT: Final = 0.6
"""Share of an utterance's words that must be right before a confusion in it counts."""
LONGEST: Final = 3
"""Most words on either side of a confusion."""


def confusions(said: list[str], heard: list[str]) -> list[tuple[str, str]]:
    """The places where two utterances differ, with both sides' words."""
    matcher = SequenceMatcher(None, said, heard, autojunk=False)
    return [
        (" ".join(said[a:b]), " ".join(heard[c:d]))
        for what, a, b, c, d in matcher.get_opcodes()
        if what != "equal" and 0 < b - a <= LONGEST and d - c <= LONGEST
    ]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path)
    rows = [line.split("\t") for line in parser.parse_args().pairs.read_text("utf-8").splitlines()]
    counts: Counter[tuple[str, str]] = Counter()
    for said, heard in ((row[0].split(), row[1].split()) for row in rows if len(row) > 1):
        same = SequenceMatcher(None, said, heard, autojunk=False).get_matching_blocks()
        if sum(block.size for block in same) >= KEPT * len(said):
            counts.update(confusions(said, heard))
    lines = [
        f"{said}\t{heard}\t{n}" for (said, heard), n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    ]
    TABLE.write_text("\n".join(lines) + "\n", "utf-8")
    print(f"{len(rows)} pairs: {len(lines)} confusions")


if __name__ == "__main__":
    main()

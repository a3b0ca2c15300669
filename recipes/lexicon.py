"""Dump the teacher's pronunciations: its letter-to-sound trees, and the words those would get wrong.

Run:  python -m recipes.lexicon --out tts_engine/tiny        (needs festival and festlex-cmu; a minute)
"""

import argparse
import gzip
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from pocketsphinx import get_model_path

from recipes.teacher import ranked_words
from tts_engine.phones import PHONES, VOWELS, PhoneEncoder, parse_tree

RULES = Path("/usr/share/festival/dicts/cmu/cmu_lts_rules.scm")
_SCHEME = """
(voice_cmu_us_slt_arctic_hts)
(define (say word)
  (format t "%s" word)
  (mapcar (lambda (syl) (mapcar (lambda (p) (format t " %s/%d" p (car (cdr syl)))) (car syl)))
    (car (cdr (cdr (lex.lookup word nil)))))
  (format t "\\n"))
"""


def read_rules(source: str) -> str:
    """Festival's trees in one line per letter: `<letter> <offset><letter> yes no …`, leaves joined by `-`."""
    text = "\n".join(line for line in source.splitlines() if not line.lstrip().startswith(";"))
    tokens = iter(re.findall(r"[()]|[^\s()]+", text[text.index("'(") + 1 :]))

    def nested() -> list[Any]:
        out: list[Any] = []
        for token in tokens:
            if token == ")":
                break
            out.append(nested() if token == "(" else token)
        return out

    def flat(node: list[Any]) -> str:
        if len(node) == 1:
            return str(node[0][-1]).replace("_epsilon_", "_")
        (feature, _, value), yes, no = node
        steps = feature.count("p.") or feature.count("n.")
        sign = "-" if feature.startswith("p.") else ""
        return f"{sign}{steps}{value} {flat(yes)} {flat(no)}"

    next(tokens)
    return "\n".join(f"{letter} {flat(tree)}" for letter, tree in nested())


def teacher_says(words: list[str]) -> dict[str, tuple[str, ...]]:
    """word -> phones with stress, as Festival's lexicon and rules have them together."""
    with tempfile.NamedTemporaryFile("w", suffix=".scm") as script:
        script.write(_SCHEME + "\n".join(f'(say "{word}")' for word in words))
        script.flush()
        run = subprocess.run(["festival", "-b", script.name], check=True, capture_output=True, text=True)
    found = {}
    for line in run.stdout.splitlines():
        word, *parts = line.split()
        phones = [p.split("/") for p in parts]
        found[word] = tuple(p + ("1" if p in VOWELS and stress == "1" else "") for p, stress in phones)
    return {word: phones for word, phones in found.items() if phones and set(phones) <= set(PHONES)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("tts_engine/tiny"))
    parser.add_argument("--words", type=int, default=40_000)
    args = parser.parse_args()
    trees = read_rules(RULES.read_text())
    bare = PhoneEncoder({}, dict(parse_tree(line) for line in trees.splitlines()))
    listed = Path(get_model_path("en-us/cmudict-en-us.dict")).read_text()
    contractions = sorted(set(re.findall(r"^([a-z]+'[a-z]+) ", listed, re.M)))
    words = ranked_words(args.words) + contractions
    said = teacher_says(words)
    kept = {w: p for w, p in said.items() if tuple(bare.pronounce(w)) != p or len(w) == 1}
    args.out.mkdir(parents=True, exist_ok=True)
    lexicon = "".join(f"{w} {' '.join(p)}\n" for w, p in sorted(kept.items()))
    for name, content in (("lexicon.txt.gz", lexicon), ("letters.txt.gz", trees + "\n")):
        (args.out / name).write_bytes(gzip.compress(content.encode(), 9, mtime=0))
    share = 1 - len(kept) / len(said)
    print(f"{len(said)} words, {len(kept)} kept; the trees alone are right for {100 * share:.1f} %")


if __name__ == "__main__":
    main()

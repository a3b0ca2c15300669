"""Writes Festival's pronunciations: its letter-to-sound trees, and the words those would get wrong.

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
from tts_engine.phones import PHONES, VOWELS, PhoneEncoder, has_vowel, parse_tree

RULES = Path("/usr/share/festival/dicts/cmu/cmu_lts_rules.scm")
_SCHEME = """
(voice_cmu_us_slt_arctic_hts)
(define (say word)
  (format t "%s" word)
  (mapcar (lambda (syl) (mapcar (lambda (p) (format t " %s/%d" p (car (cdr syl)))) (car syl)))
    (car (cdr (cdr (lex.lookup word nil)))))
  (format t "\\n"))
"""


CORRECTED = """
does d ah1 z; use y uw1 z; uses y uw1 z ax z; live l ih1 v; lives l ih1 v z; minute m ih1 n ax t
excuse ih k s k y uw1 z; refuse r ih f y uw1 z; invite ih n v ay1 t; convert k ax n v er1 t; produce p r ax d uw1 s
combine k ax m b ay1 n; conduct k ax n d ah1 k t; insert ih n s er1 t; invalid ih n v ae1 l ih d; wound w uw1 n d
bass b ey1 s; blessed b l eh1 s t; aged ey1 jh d
metre m iy1 t er; metres m iy1 t er z; centimetre s eh1 n t ax m iy1 t er; centimetres s eh1 n t ax m iy1 t er z
millimetre m ih1 l ax m iy1 t er; millimetres m ih1 l ax m iy1 t er z; kilometre k ax l aa1 m ax t er
kilometres k ax l aa1 m ax t er z; micrometre m ay1 k r ow m iy1 t er; micrometres m ay1 k r ow m iy1 t er z
nanometre n ae1 n ow m iy1 t er; nanometres n ae1 n ow m iy1 t er z; litre l iy1 t er; litres l iy1 t er z
millilitre m ih1 l ax l iy1 t er; millilitres m ih1 l ax l iy1 t er z; milliliter m ih1 l ax l iy1 t er
milliliters m ih1 l ax l iy1 t er z; kilohertz k ih1 l ax hh eh1 r t s; megahertz m eh1 g ax hh eh1 r t s
gigahertz g ih1 g ax hh eh1 r t s
aitch ey1 ch; email iy1 m ey1 l; emails iy1 m ey1 l z; wifi w ay1 f ay1; username y uw1 z er n ey1 m
cellphone s eh1 l f ow1 n; ipad ay1 p ae1 d; photoshop f ow1 t ow sh aa1 p; spotify s p aa1 t ax f ay1
nvidia eh n v ih1 d iy ax; verizon v er ay1 z ax n; pokemon p ow1 k ey m aa1 n; avatar ae1 v ax t aa1 r
schema s k iy1 m ax; integer ih1 n t ax jh er
photosynthesis f ow1 t ow s ih1 n th ax s ax s; cucumbers k y uw1 k ah1 m b er z; bluebird b l uw1 b er1 d
superhero s uw1 p er hh ih1 r ow; neighbourhood n ey1 b er hh uh1 d; humour hh y uw1 m er
behaviour b ih hh ey1 v y er; recognise r eh1 k ax g n ay1 z; practise p r ae1 k t ax s; whilst w ay1 l s t
nina n iy1 n ax; priya p r iy1 y ax; lima l iy1 m ax; katrina k ax t r iy1 n ax
hmm hh ah1 m; hm hh ah1 m; mm ah1 m; mmm ah1 m; shh sh; nth eh1 n th
"""
"""Words as the assistant says them, where Festival differs: it has the noun where the verb is meant (it separates
them by part of speech, which nothing here does), or its letter-to-sound rules are wrong about them."""


def corrected() -> dict[str, tuple[str, ...]]:
    entries = (entry.split() for line in CORRECTED.split("\n") for entry in line.split(";"))
    return {word: tuple(phones) for word, *phones in filter(None, entries)}


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


def festival_says(words: list[str]) -> dict[str, tuple[str, ...]]:
    """word -> phones with stress, from Festival's lexicon and rules together."""
    with tempfile.NamedTemporaryFile("w", suffix=".scm") as script:
        script.write(_SCHEME + "\n".join(f'(say "{word}")' for word in words))
        script.flush()
        run = subprocess.run(["festival", "-b", script.name], check=True, capture_output=True, text=True)
    found = {}
    for line in run.stdout.splitlines():
        word, *parts = line.split()
        phones = [p.split("/") for p in parts]
        found[word] = tuple(p + ("1" if p in VOWELS and stress == "1" else "") for p, stress in phones)
    return {word: phones for word, phones in found.items() if has_vowel(phones) and set(phones) <= set(PHONES)}


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
    said = festival_says(words) | corrected()
    kept = {w: p for w, p in said.items() if tuple(bare.pronounce(w)) != p or len(w) == 1}
    args.out.mkdir(parents=True, exist_ok=True)
    lexicon = "".join(f"{w} {' '.join(p)}\n" for w, p in sorted(kept.items()))
    for name, content in (("lexicon.txt.gz", lexicon), ("letters.txt.gz", trees + "\n")):
        (args.out / name).write_bytes(gzip.compress(content.encode(), 9, mtime=0))
    share = 1 - len(kept) / len(said)
    print(f"{len(said)} words, {len(kept)} kept; the trees alone are right for {100 * share:.1f} %")


if __name__ == "__main__":
    main()

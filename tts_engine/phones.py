"""Words to phones for the small voice: Festival's lexicon, its letter-to-sound trees, pauses from punctuation.

The phones are those the voice was trained on (American English, vowels with a trailing 1 when stressed). The input is
spelled-out text (see `text.py`); anything without phones is left out. Two files in the voice's folder feed this:

lexicon.txt.gz  one word and its phones per line: words that the trees would get wrong, as Festival pronounces them
letters.txt.gz  one decision tree per letter, prefix order: `<offset><letter> yes no` or a leaf of phones joined by `-`
"""

import gzip
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tts_engine.errors import CheckpointRefused

PAUSES = frozenset(("sil", ",", ".", "?", "!"))
VOWELS = frozenset("aa ae ah ao aw ax ay eh er ey ih iy ow oy uh uw".split())  # noqa: SIM905
_CONSONANTS = "b ch d dh f g hh jh k l m n ng p r s sh t th v w y z zh".split()  # noqa: SIM905
PHONES: tuple[str, ...] = (
    *("sil", ",", ".", "?", "!", "#"),
    *sorted(VOWELS),
    *(vowel + "1" for vowel in sorted(VOWELS)),
    *_CONSONANTS,
)
SPECIAL_TOKENS: Mapping[str, int] = {"<|tts|>": 0, "<|text|>": 1, "<|audio|>": 2, "<|ref_audio|>": 3}
_IDS = {phone: len(SPECIAL_TOKENS) + i for i, phone in enumerate(PHONES)}

_PAUSE_OF = {
    ",": ",",
    ";": ",",
    ":": ".",
    ".": ".",
    "…": ".",
    "?": "?",
    "!": "!",
    "—": ",",
    "–": ",",
    "(": ",",
    ")": ",",
}
_STRENGTH = {"#": 0, ",": 1, ".": 2, "?": 3, "!": 3}
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[,;:.…?!—–()]")
_SIBILANTS = frozenset(["s", "z", "sh", "zh", "ch", "jh"])
_VOICELESS = frozenset(["p", "t", "k", "f", "th"])
_DIGITS = "zero one two three four five six seven eight nine".split()  # noqa: SIM905
_LETTER_NAMES = (
    "a ey1; b b iy1; c s iy1; d d iy1; e iy1; f eh1 f; g jh iy1; h ey1 ch; i ay1; j jh ey1; k k ey1; l eh1 l; m eh1 m; "
    "n eh1 n; o ow1; p p iy1; q k y uw1; r aa1 r; s eh1 s; t t iy1; u y uw1; v v iy1; w d ah1 b ax l y uw; x eh1 k s; "
    "y w ay1; z z iy1"
)
_LETTERS = {letter: phones for letter, *phones in (part.split() for part in _LETTER_NAMES.split("; "))}

Tree: TypeAlias = "str | tuple[int, str, Tree, Tree]"


@dataclass(frozen=True)
class PhoneText:
    """ids of the phones; words as (char_start, char_end, first, end): characters and the ids [first, end) they make."""

    ids: tuple[int, ...]
    words: tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True)
class PhoneEncoder:
    """lexicon: lower-case word -> phones; trees: letter -> its decision tree."""

    lexicon: Mapping[str, tuple[str, ...]]
    trees: Mapping[str, Tree]

    @classmethod
    def load(cls, folder: Path) -> "PhoneEncoder":
        """Raises CheckpointRefused if a file is missing or damaged, or names a phone the voice does not have."""
        try:
            lines = gzip.decompress((folder / "lexicon.txt.gz").read_bytes()).decode().splitlines()
            trees = gzip.decompress((folder / "letters.txt.gz").read_bytes()).decode().splitlines()
        except (OSError, EOFError, ValueError) as error:
            raise CheckpointRefused(f"{folder}: the phones front end cannot read its lexicon: {error}") from error
        lexicon = {word: tuple(phones) for word, *phones in (line.split() for line in lines)}
        unknown = {p for phones in lexicon.values() for p in phones} - set(PHONES)
        if unknown:
            raise CheckpointRefused(
                f"{folder}/lexicon.txt.gz has phones the voice does not know: {sorted(unknown)[:5]}"
            )
        return cls(lexicon, dict(parse_tree(line) for line in trees))

    def phones_of(self, text: str) -> PhoneText:
        """Phones of a piece of text, with a silence first, `#` between words and pauses for punctuation.

        A piece that stops without punctuation gets a short pause. Text without a single word gives no ids.
        """
        names: list[str] = ["sil"]
        words: list[tuple[int, int, int, int]] = []
        gap = ""
        found = [*_TOKEN.finditer(text)]
        tokens = [match.group() for match in found]
        for at, (match, token) in enumerate(zip(found, tokens, strict=True)):
            if token in _PAUSE_OF:
                if words:
                    gap = max(gap or "#", _PAUSE_OF[token], key=lambda pause: _STRENGTH[pause])
                continue
            phones = self._character("a") if _is_letter_a(tokens, at) else flapped(self.spoken(token))
            if not phones:
                continue
            if words:
                names.append(gap or "#")
            words.append((match.start(), match.end(), len(names), len(names) + len(phones)))
            names += phones
            gap = ""
        if not words:
            return PhoneText((), ())
        names.append(gap or ",")
        return PhoneText(tuple(_IDS[name] for name in names), tuple(words))

    def spoken(self, token: str) -> list[str]:
        """Phones of one word as written: capitals that cannot be a word are spelled, digits are read one by one."""
        plain = unicodedata.normalize("NFKD", token.replace("’", "'")).encode("ascii", "ignore").decode()
        lower = plain.lower()
        if lower in self.lexicon and (len(lower) > 1 or lower in ("a", "i")):
            return list(self.lexicon[lower])
        if len(plain) == 1 or (plain.isupper() and len(plain) <= 5):
            return [p for letter in lower for p in self._character(letter)]
        phones: list[str] = []
        for run in re.findall(r"[a-z']+|[0-9]", lower):
            phones += self._character(run) if run.isdigit() else self.pronounce(run.strip("'"))
        return phones

    def pronounce(self, word: str) -> list[str]:
        """Phones of a lower-case word: lexicon, possessive of a known word, or letter to sound."""
        if word in self.lexicon:
            return list(self.lexicon[word])
        if word.endswith("'s"):
            stem = self.pronounce(word[:-2])
            last = stem[-1] if stem else ""
            return stem + (["ax", "z"] if last in _SIBILANTS else ["s"] if last in _VOICELESS else ["z"])
        return self.sound_out(word.replace("'", ""))

    def sound_out(self, word: str) -> list[str]:
        """Letter to sound: each letter's tree looks at three letters on either side. Words without a vowel are
        spelled."""
        phones: list[str] = []
        padded = f"00#{word}#00"
        for place, letter in enumerate(word, 3):
            node = self.trees.get(letter, "")
            while not isinstance(node, str):
                offset, wanted, yes, no = node
                node = yes if padded[place + offset] == wanted else no
            phones += [p.removesuffix("0") for p in node.split("-") if p and p != "_"]
        return phones if has_vowel(phones) else [p for letter in word for p in self._character(letter)]

    def _character(self, character: str) -> list[str]:
        if character.isdigit():
            return self.pronounce(_DIGITS[int(character)])
        return list(_LETTERS.get(character, ()))


def flapped(phones: list[str]) -> list[str]:
    """`forty`, `butter`: an American t between a vowel or r and an unstressed vowel is as short and voiced as a d.

    Festival's lexicon has a plain t there, which recognisers hear as `four tee` and `butcher`.
    """
    return [
        "d" if phone == "t" and _flaps_behind(before) and behind in VOWELS else phone
        for before, phone, behind in zip(["", *phones], phones, [*phones[1:], ""], strict=False)
    ]


def _flaps_behind(phone: str) -> bool:
    return phone == "r" or phone.removesuffix("1") in VOWELS


def _is_letter_a(tokens: Sequence[str], at: int) -> bool:
    """Whether an `a` is the letter's name and not an article: as in `a m`, or a capital in a sentence or a series."""
    before, behind = tokens[at - 1] if at else ".", [*tokens[at + 1 : at + 3], "", ""]
    if tokens[at] == "a":
        return behind[0] == "m"
    in_row = behind[0] == "," and len(behind[1]) == 1 and behind[1].isupper()
    return tokens[at] == "A" and (in_row or _PAUSE_OF.get(before, ",") == ",")


def has_vowel(phones: Iterable[str]) -> bool:
    return any(phone.removesuffix("1") in VOWELS for phone in phones)


def parse_tree(line: str) -> tuple[str, Tree]:
    """One line of letters.txt.gz -> the letter and its tree."""
    letter, *parts = line.split(" ")
    tree = _node(iter(parts))
    return letter, tree


def _node(parts: Iterator[str]) -> Tree:
    part = next(parts)
    if not (part[0] == "-" or part[0].isdigit()):
        return part
    size = 2 if part[0] == "-" else 1
    return int(part[:size]), part[size:], _node(parts), _node(parts)

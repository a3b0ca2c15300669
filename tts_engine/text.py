"""Written text to speech text: numbers, dates, times, money, units, addresses and markup as people say them.

    speech_text("On 3 May 2024 at 9:05, it cost $3.50.")
    -> "On the third of May twenty twenty-four at nine oh five, it cost three dollars and fifty cents."

Code blocks, emoji and link targets are left out. Pure. Control tags (`<|sfx:cough|>`) pass through.
English. Rules run in order, each over text that the earlier ones have already made sayable, so a rule never sees a
number inside an address.

Unicode CLDR's rules (`unicode_rbnf`) spell the numbers. The kinds around them are ours: `num2words` spells only, and
the grammars of NeMo and WeText read a whole text as one language of written forms, without Markdown, code or LaTeX.
"""

import re
import unicodedata

from tts_engine.markup import CONTROL, strip_structure
from tts_engine.reading import abbreviations, amounts, dates, names, numbers, signs
from tts_engine.reading.blocks import COMMENT, Blocks
from tts_engine.reading.inline import words
from tts_engine.reading.words import Rules

_RULES: Rules = (
    *signs.EMOTICONS, *names.ADDRESSES, *names.IDENTIFIERS, *abbreviations.SHOUTS, *names.TECHNICAL,
    *signs.WRITTEN_SIGNS, *dates.SPANS, *abbreviations.SHORT, *abbreviations.ROMANS, *amounts.CONTINENTAL,
    *dates.DATES, *dates.TIMES, *numbers.RATIOS, *numbers.PHONES, *names.INTERNET, *amounts.PER_UNIT, *amounts.MONEY,
    *numbers.RANGES, *dates.DECADES, *names.VERSIONS, *numbers.GROUPED, *numbers.POWERS, *amounts.FRACTIONS_OF_UNITS,
    *numbers.FRACTIONS, *amounts.PARTS, *numbers.SIZES, *amounts.LENGTHS, *numbers.MAGNITUDES, *amounts.COUNTED,
    *dates.YEARS, *numbers.ORDINALS, *names.LONG_VERSIONS, *numbers.SUMS, *abbreviations.LETTERS, *signs.GAPS,
    *numbers.PLAIN, *signs.DASHES,
)  # fmt: skip


def speech_text(text: str) -> str:
    """The words that a person would say, reading `text` aloud. Empty if nothing in it can be said."""
    return say(plain_text(text))


def plain_text(text: str) -> str:
    """Markdown to the words that are read, a line each; what is for the eye alone is left out."""
    blocks, lines = Blocks(), []
    while (line := blocks.line(text, over=True)) is not None:
        end = line.end
        if end is None:
            end = words_end(text, line.words)
            lines.append(line.lead + line_words(text[line.words : end], line.stop))
        elif line.said:
            lines.append(words(line.said))
        text = text[end:]
    return "\n".join(lines)


def words_end(text: str, start: int) -> int:
    """The end of a line of words: behind its newline, or where a comment begins."""
    found = re.compile(rf"\n|{COMMENT}").search(text, start)
    return found.end() if found else len(text)


def line_words(text: str, stop: bool) -> str:
    """The end of a line without its marks; a heading or an item ends as a sentence does."""
    said = words(re.sub(r"[ \t]+#+[ \t]*$", "", text.rstrip()) if stop else text)
    return f"{said}." if stop and said.strip() and said.strip()[-1] not in ".,;:!?" else said


def say(plain: str) -> str:
    """Text without markup as it is said."""
    parts = CONTROL.split(strip_structure(unicodedata.normalize("NFC", plain)))
    return signs.tidy("".join(part if i % 2 else _said(part) for i, part in enumerate(parts)))


def say_as_written(plain: str) -> str:
    """Text of another language without markup: nothing in it is read by rules of English."""
    parts = CONTROL.split(strip_structure(unicodedata.normalize("NFC", plain)))
    return signs.tidy("".join(parts))


def _said(text: str) -> str:
    for pattern, said in _RULES:
        text = pattern.sub(said, text)
    return "".join(map(signs.symbol, text))

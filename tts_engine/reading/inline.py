"""Marks within one sentence: what they mark stays, and the marks go.

Decided from the sentence alone: code, links, images, HTML, footnote marks, emphasis, formulas between `$` or `\\( \\)`,
stage directions. A mark without its partner in the sentence goes too.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable

from tts_engine.reading.maths import formula

_KEPT = 0xF0000
"""Private characters stand for what must not be read again, such as code, while the rest is."""
_PRIVATE = re.compile(r"[\U000F0000-\U000FFFFD]")
_MATH = (
    r"\\\((?P<m1>.+?)\\\)|\\\[(?P<m2>.+?)\\\]|\$\$(?P<m3>.+?)\$\$|"
    r"(?<![\\$\w])\$(?P<m4>(?![\s$])[^$]*?(?<!\s))\$(?!\w)"
)
_CODE = r"(?<!`)(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"
_LINK_END = r"\((?:[^()\s]|\([^()\s]*\))*(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)"
_HTML = (
    "a|abbr|b|big|br|button|center|cite|code|dd|del|details|dfn|div|dl|dt|em|figure|font|form|h[1-6]|hr|i|img|input|ins|"
    "kbd|label|li|mark|ol|p|pre|q|s|samp|small|span|strike|strong|sub|summary|sup|svg|table|tbody|td|th|thead|tr|tt|u|"
    "ul|var|video|wbr"
)
"""Other words in angle brackets, `<your name>`, are to be filled in, and so they are read."""
_ATOM = re.compile(
    rf"{_MATH}|{_CODE}|(?P<escaped>\\[!-/:-@\[-`{{-~])|<(?P<address>(?:https?://|mailto:)[^<>\s]+)>|"
    rf"(?P<gone><(?:{_HTML})(?:\s+[^<>|]*=[^<>|]*|\s*/?|\s+[a-z]+)>|<[A-Za-z][^<>|]*(?:=[^<>|]*|/)>|</[A-Za-z][^<>|]*>|</?[A-Za-z][^<>|]*=[^<>|]*\Z|!\[[^\]]*\](?:{_LINK_END}|\[[^\]]*\])|"
    r"!\[[^\]]*(?:\]\([^)]*)?\Z|\[\^[^\]\s]+\]|\[\d+\](?![(\[]))|(?<!\w)<(?P<named>[A-Za-z][\w '-]*)>(?!\w)",
    re.S,
)
_LINKS = (
    re.compile(rf"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]{_LINK_END}"),
    re.compile(r"\[([^\[\]]*)\](?:\[[^\[\]]*\]|\([^)]*\Z)"),
)
_EMPHASIS = (
    re.compile(r"(\*\*\*|\*\*|\*|___|__|~~)(?=\S)(.+?)(?<=\S)\1", re.S),
    re.compile(r"(?<!\w)(_)(?=\S)(.+?)(?<=\S)_(?!\w)", re.S),
)
_STAGE = (
    "laugh|sigh|smile|grin|chuckle|giggle|cough|pause|nod|wink|shrug|whisper|gasp|yawn|sniff|sniffle|groan|sob|smirk|"
    "snort|hum|clap"
)
"""Things that a face or a throat does while one speaks."""
_ACTED = re.compile(
    rf"(?:{_STAGE})(?:e?s|ing)\b|clears? (?:\w+ )?throat|(?:{_STAGE}|laughter|applause|music|silence|beat)$", re.I
)
_VERB = re.compile(r"(?!(?:this|is|was|has|does|as|his|its|yes|always|perhaps|sometimes|less|plus)\b)[a-z]+s\b")
_STARRED = re.compile(r"(?<![\w*_])([*_])(?=[^\s*_])([^*_]+?)(?<=\S)\1(?![\w*_])")
_BRACKETED = re.compile(r"[\[(]([A-Za-z]+(?: [a-z]+){0,4})[\])](?!\()")
_PROSE = re.compile(r"(?<![\\{A-Za-z])[A-Za-z]{2,}(?![A-Za-z]*\})(?: |$)")
_STRAY = re.compile(r"\*{2,}|~~|(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)|`+|(?<!\\)\$(?=[A-Za-z_{\\])")
_OPEN = re.compile(r"`|\[(?=[^\]\s])(?![^\[\]]*\](?!\())|\]\([^()\s]*$|\\\(|\\\[|\$\$|(?<![\w$])\$(?=[A-Za-z\\(])")
_STAR_OPEN = re.compile(r"(?:^|\s)[*_](?=\w)[^*_]*$")


def words(text: str) -> str:
    """The sentence without its marks; the sentence itself where it has none."""
    kept: list[str] = []

    def keep(said: str) -> str:
        kept.append(said)
        return chr(_KEPT + len(kept) - 1)

    bare = _ATOM.sub(lambda match: _atom(match, keep), _PRIVATE.sub("", text))
    bare = re.sub(r"(?<=\d)\*\*(?=\d)", " to the power of ", bare)
    bare = re.sub(r"(?<=[\w)]) \* (?=[\w(])|(?<=\d)\*(?=\d)", " × ", bare)  # before it could pass for emphasis
    for link in _LINKS:
        bare = link.sub(r"\1", bare)
    bare = _STARRED.sub(_starred, bare)
    bare = _BRACKETED.sub(lambda match: "" if _ACTED.match(match[1]) else match.group(), bare)
    for emphasis in _EMPHASIS:
        bare = emphasis.sub(r"\2", bare)
    bare = html.unescape(_STRAY.sub("", bare))
    return re.sub(r"[\U000F0000-\U000FFFFD]", lambda match: kept[ord(match.group()) - _KEPT], bare)


def is_open(text: str) -> bool:
    """A link, code or a formula has begun and not ended, so a cut would take it apart."""
    closed = re.sub(rf"{_MATH}|{_CODE}|\]{_LINK_END}", "", text)
    return _OPEN.search(closed) is not None


def is_marked(text: str) -> bool:
    """The text ends within emphasis, which may be a stage direction."""
    return _STAR_OPEN.search(text) is not None


def _atom(match: re.Match[str], keep: Callable[[str], str]) -> str:
    if (source := match["m1"] or match["m2"] or match["m3"] or match["m4"]) is not None:
        return keep(_math(match, source))
    if match["code"] is not None:
        return keep(match["code"].strip())
    if match["escaped"] is not None:
        return keep(match["escaped"][1])
    if match["address"] is not None:
        return keep(match["address"].removeprefix("mailto:"))
    if match["named"] is not None:
        return match["named"]
    return " " if match["gone"].startswith("<") else ""


def _math(match: re.Match[str], source: str) -> str:
    """A formula in words. Between two dollars there may also be words: then they are prices."""
    if match["m4"] is not None and (_PROSE.search(source) or not re.search(r"[A-Za-z\\^_=<>+]", source)):
        return match.group()
    return formula(source) or " a formula "


def _starred(match: re.Match[str]) -> str:
    """A stage direction stands between sentences and says what somebody does; the rest is emphasis."""
    before, after, inner = match.string[: match.start()].rstrip(), match.string[match.end() :].lstrip(), match[2]
    begins = not before or before[-1] in ".!?…,;:—\"”*)]"
    acted = _ACTED.match(inner) or (_VERB.match(inner) and " " in inner and not after[:1].islower())
    return "" if begins and acted else match.group()

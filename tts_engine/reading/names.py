"""Names of technical things: addresses, paths, identifiers, versions, formulas of chemistry, languages."""

from __future__ import annotations

import re

from tts_engine.reading.tables import FILES, FOLDERS, VERSIONED
from tts_engine.reading.words import Rules, cardinal, decimal, digits


def _address(match: re.Match[str]) -> str:
    """https://www.example.com/a/b?c -> "example dot com": the host is worth saying, the rest is not."""
    host = re.sub(r"^(?:[a-z]+://)?(?:www\.)?", "", match.group(), flags=re.I)
    host = re.split(r"[/?#:]", host, maxsplit=1)[0].rstrip(".")
    end = "." if match.group().endswith(".") else ""
    return host.replace("-", " dash ").replace(".", " dot ") + end


def _mail(match: re.Match[str]) -> str:
    return match.group().replace("@", " at ").replace(".", " dot ").replace("_", " underscore ").replace("-", " dash ")


def _path(match: re.Match[str]) -> str:
    """src/app/main.py -> "main.py": its last name is worth saying."""
    parts = [part for part in re.split(r"[/\\]", match.group().rstrip(".")) if part]
    return (parts[-1] if parts else "") + ("." if match.group().endswith(".") else "")


def _identifier(match: re.Match[str]) -> str:
    """d41d8cd98f -> "d four one d and so on": enough to know it again."""
    return " ".join(cardinal(int(c)) if c.isdigit() else c.upper() for c in match.group()[:4]) + " and so on"


def _mixed(match: re.Match[str]) -> str:
    """CO2 -> "CO 2", H2O -> "H 2 O": letters by letters, figures as numbers."""
    apart = re.sub(r"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Z])|(?<=[A-Z]{2})(?=[a-z]\d)", " ", match.group())
    return re.sub(r"[A-Z]+", lambda run: " ".join(run.group()), apart)


def _named_version(match: re.Match[str]) -> str:
    return f"{match[1]} {' point '.join(cardinal(int(part)) for part in match[2].split('.'))}"


def _picture_lines(match: re.Match[str]) -> str:
    """1080p -> "ten eighty p"."""
    above, below = divmod(int(match.group(1)), 100)
    return f"{cardinal(above)} {cardinal(below)} p"


_PART = r"[\w.@+-]+"
ADDRESSES: Rules = (
    (re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b"), _mail),
    (re.compile(r"\b(?:https?://|ftp://|www\.)[^\s<>()\[\]\"]+", re.I), _address),
    (re.compile(r"\b(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev|ai|edu|gov|uk|de|fr)(?:/[^\s<>()\"]*)?\b", re.I), _address),
)
IDENTIFIERS: Rules = (
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), _identifier),
    (re.compile(r"\b(?=(?:[0-9]*[a-f]){2})(?=(?:[a-f]*[0-9]){2})[0-9a-f]{7,}\b"), _identifier),
    (re.compile(r"\b(?=[A-Za-z_-]*\d)(?=(?:[\d_-]*[A-Za-z]){3})[\w-]{24,}\b(?![.])"), _identifier),
    (re.compile(rf"(?<![\w/\\])(?:~?/|\.{{1,2}}/|[A-Za-z]:[\\/]|(?:{FOLDERS})/)(?:{_PART}[/\\])*{_PART}[/\\]?|"
                rf"(?<![\w/\\])(?:{_PART}[/\\])+[\w-]+\.(?:{FILES})\b"), _path),
    (re.compile(rf"(?<=\w)\.(?=(?:{FILES})\b)"), " dot "),
    (re.compile(r"(?<=[a-z_]{2})\.(?=[a-z_]{2,}\b(?:\(|\.|\b))(?!\s)"), " dot "),
    (re.compile(r"\b[a-z]+(?:[A-Z][a-z]+){2,}\b"), lambda m: re.sub(r"(?=[A-Z])", " ", m.group()).lower()),
    (re.compile(r"(?<=\w)\(\)"), ""),
)  # fmt: skip
TECHNICAL: Rules = (
    (re.compile(r"\b([CFJ])#(?!\w)"), r"\1 sharp"),
    (re.compile(r"\b([CcG])\+\+(?!\w)"), r"\1 plus plus"),
    (re.compile(r"(?<!\w)\.NET\b"), "dot net"),
    (re.compile(r"\b([A-Z]{2,})/(?=[A-Z]{2,}\b|\d)"), r"\1 "),
    (re.compile(r"(?<![\w.,-])[A-Z]{1,4}[a-z]?\d{1,3}(?:[A-Z][a-z]?\d{0,3}){0,3}(?![\w-])"), _mixed),
    (re.compile(r"#(?=[A-Za-z])"), "hashtag "),
)
VERSIONS: Rules = (
    (re.compile(rf"\b({VERSIONED}) ?(\d+(?:\.\d+)+)\b"), _named_version),
    (re.compile(r"\b([A-Za-z]{2,})(\d+\.\d+)(?:-(?=\d)|(?![\d.]))"), r"\1 \2 "),
    (re.compile(r"\b(720|1080|1440|2160)p\b"), _picture_lines),
)
INTERNET: Rules = (
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b"), lambda m: " dot ".join(digits(part) for part in m.group().split("."))),
)
LONG_VERSIONS: Rules = (
    (re.compile(r"(?<![\d.])\d+(?:\.\d+){2,}\b"),
     lambda m: " " + " point ".join(decimal(part, None) for part in m.group().split("."))),
)  # fmt: skip

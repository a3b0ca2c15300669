"""Money, units and temperatures."""

from __future__ import annotations

import re

from tts_engine.reading.tables import CURRENCY, IRREGULAR, MEASURES, PER, SCALES, SHORT_PER, UNCOUNTED, UNITS
from tts_engine.reading.words import NUMBER, WHOLE, Rules, alternatives, decimal, ends_sentence


def plural(noun: str, count: float) -> str:
    if count == 1 or noun in UNCOUNTED:
        return noun
    head, *rest = noun.split(" ")
    if head in ("square", "cubic", "kilowatt", "milliamp", "fluid", "US", "Australian", "Canadian", "Swiss"):
        return f"{head} {plural(' '.join(rest), count)}"
    return " ".join([IRREGULAR.get(head, head + "s"), *rest])


def counted(whole: str | None, part: str | None, noun: str, sign: str | None = None) -> str:
    return f"{decimal(whole, part, sign)} {plural(noun, 1 if whole == '1' and not part else 2)}"


def _money(match: re.Match[str]) -> str:
    unit, small = CURRENCY[match["unit"]]
    whole, part, scale = match["whole"] or "0", match["part"], match["scale"]
    sign = match["sign"]
    attribute = _is_attribute(match) or _PRICED.match(match.string[match.end() :]) is not None
    noun = unit if attribute else plural(unit, 2)
    if scale:
        return f"{decimal(whole, part, sign)} {SCALES.get(scale, scale.lower())} {noun}"
    amount = int(whole.replace(",", "")[:16])
    said = f"{decimal(whole, None, sign)} {noun if amount != 1 else unit}"
    if part and small and len(part) == 2:
        cents = int(part)
        if not cents:
            return said
        tail = counted(str(cents), None, small)
        return tail if not amount else f"{said} and {tail}"
    return said if not part else f"{decimal(whole, part, sign)} {plural(unit, 2)}"


def _is_attribute(match: re.Match[str]) -> bool:
    """A $20 bill is a "dollar" bill, a 5 kg bag a "kilogram" bag; without a noun they are dollars and kilograms."""
    before, after = match.string[: match.start()], match.string[match.end() :]
    return _ARTICLE.search(before) is not None and _NOUN.match(after) is not None


def _price_range(match: re.Match[str]) -> str:
    """$5-10 -> "5 to $10", so that the currency is said once; with cents both are prices of their own."""
    first = match["first"]
    return f"{match['unit'] if '.' in first else ''}{first} to {match['unit']}"


def _unit(match: re.Match[str]) -> str:
    """A full stop behind the unit goes unless it ends the sentence."""
    unit = UNITS[match["unit"]]
    said = f"{decimal(match['whole'], match['part'], match['sign'])} {unit}"
    if not _is_attribute(match):
        said = counted(match["whole"], match["part"], unit, match["sign"])
    return said + ("." if match["stop"] and ends_sentence(match) else "")


def _per(match: re.Match[str]) -> str:
    """10 kg/m² -> "ten kilograms per square metre", 5 l/100 km -> "five litres per 100 km"."""
    said = counted(match["whole"], match["part"], UNITS[match["unit"]], match["sign"])
    return f"{said} per {match['every'] + match['per'] if match['every'] else UNITS[match['per']]}"


def _part_of(match: re.Match[str]) -> str:
    """One half cup, three quarters of a cup: before a unit, which is said whole."""
    over, unit = match["over"], UNITS.get(match["unit"], match["unit"])
    single = re.sub(r"(?<=[a-z])s$", "", {"feet": "foot", "inches": "inch"}.get(unit, unit))
    return f"{match['number']} {'' if over == 'one' else f'of {_article(single)} '}{single}"


def _inches(match: re.Match[str]) -> str:
    """5" x 7", a 55" screen; a mark that closes a quotation stays."""
    before, after = match.string[: match.start()], match.string[match.end() :]
    if re.search(r'["“]\d[\d.]*$', before) or len(re.findall(r'(?<!\d)"|\d"(?! ?[\w.,;:)]|$)', before)) % 2:
        return match.group()
    return " inch" if re.match(r" (?!x |by )[A-Za-z]", after) else " inches"


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeio" or noun == "hour" else "a"


_ARTICLE = re.compile(
    r"\b(?:an?|the|this|that|his|her|its|our|their|my|your|another|each|every|first|second|new)"
    r"(?: [\w-]+,| [\d.,]+ to)? $",
    re.IGNORECASE,
)
_NOUN = re.compile(
    r"-[a-z]| (?!(?:and|or|to|in|of|per|a|an|the|is|are|was|were|for|from|on|at|that|which|more|less|each|every|than|"
    r"by|if|as|but|so|i|you|he|she|it|we|they|this|last|next|back|off|away|now|today|goes?|went|will|would|can|could|"
    r"has|have|had|with|when|while|before|after|because)\b)[a-z]+"
)
_PRICED = re.compile(r"[ -](?:deal|loan|bill|note|budget|fund|contract|project|fine|gift|grant|prize|house|coin)\b")
_SIGN = r"(?P<sign>[-−])?"
_MARK = alternatives(CURRENCY)
_LETTERS = alternatives(unit for unit in UNITS if unit.isalpha())
_SIGNS = alternatives(unit for unit in UNITS if not unit.isalpha())
_AMOUNT = rf"{WHOLE}?(?:\.(?P<part>\d+))?(?<=\d)"
_SCALE = r"(?: ?(?P<scale>thousand|million|billion|trillion|bn|mn|tn|(?<=\d)[kKmMbBT]|(?<=\d )[kKmMbBT](?= |$)))?(?!\w)"

CONTINENTAL: Rules = (
    (re.compile(r"(?<![\d.,])(\d{1,3}(?:[. \u00a0\u202f]\d{3})+),(\d{1,2})(?![\d,]*\d)"),
     lambda m: f"{re.sub(r'[^0-9]', '', m[1])}.{m[2]}"),
    (re.compile(r"(?<![\d.,])(\d{1,3}(?:[\u00a0\u202f\u2009]\d{3})+|[1-9]\d{0,2}(?:(?: \d{3})* 000| \d{3} \d{3}))"
                r"(?![ -]?\d)"),
     lambda m: re.sub(r"\D", "", m[1])),
    (re.compile(r"(?<=[$€£¥])(\d{1,3}(?:\.\d{3})*\.\d\d0|\d{1,3}(?:\.\d{3}){2,})(?![.,]?\d)"),
     lambda m: m[1].replace(".", "")),
    (re.compile(r"(?<![\d.,])(\d+),(\d{1,2})(?![.,]?\d)"), r"\1.\2"),
)  # fmt: skip
"""22,1 and 1.234,56 as they are written in English; `$5.500` has no cents, so its full stop stands for a comma."""
MONEY: Rules = (
    (re.compile(r"(?P<unit>[$€£¥]) ?(?P<first>\d[\d,]*(?:\.\d+)?) ?(?:[-–~]|to) ?(?P=unit)?(?=\d)"), _price_range),
    (re.compile(rf"(?<![A-Za-z]){_SIGN}(?P<unit>{_MARK}) ?{_AMOUNT}{_SCALE}"), _money),
    (re.compile(rf"(?<![\w.]){_SIGN}{WHOLE}(?:\.(?P<part>\d+))? ?(?P<scale>)(?P<unit>{_MARK})(?!\w)"), _money),
)
PER_UNIT: Rules = (
    (re.compile(rf"(\d[\d.,]*(?: ?[a-zA-Z%]{{0,8}}))/(?:({PER})\b|({alternatives(SHORT_PER)})\b(?:\.(?= [a-z\d]))?)"),
     lambda m: f"{m[1]} per {m[2] or SHORT_PER[m[3]]}"),
)
FRACTIONS_OF_UNITS: Rules = (
    (re.compile(r"(?<![\d.])0?\.5 (?=(?:cup|teaspoon|tablespoon|pound|ounce|litre|liter|mile|inch|kilogram|hour)s?\b)"
                r"(?P<unit>\w+?)s?\b"), lambda m: f"half {_article(m['unit'])} {m['unit']}"),
    (re.compile(r"(?<=\d) ?[cC]\.(?= [a-z])"), " cups"),
)  # fmt: skip
PARTS: Rules = (
    (re.compile(rf"(?<!and )(?P<number>(?P<over>one|two|three|four|five|six|seven) (?:hal(?:f|ves)|quarters?|thirds?|"
                rf"fifths?|sixths?|eighths?)) (?P<unit>{MEASURES}|{_LETTERS})\b\.?"),
     lambda m: _part_of(m) + ("." if m.group().endswith(".") and ends_sentence(m) else "")),
    (re.compile(rf"(?<=and )(?P<said>a half|a quarter|three quarters|a third|two thirds|(?:an?|three|five|seven) "
                rf"eighths?) (?P<unit>{_LETTERS})\b\.?"),
     lambda m: f"{m['said']} {plural(UNITS[m['unit']], 2)}" + ("." if ends_sentence(m) else "")),
)  # fmt: skip
LENGTHS: Rules = (
    (re.compile(r"(?<=\d) ?in(?:\.?(?= (?:long|wide|tall|high|thick|deep|by|x)\b)|(?=[.,;:)!?]|$))"), " inches"),
    (re.compile(r"\b(\d)['′](\d{1,2})(?:[\"″]|(?!\w))"), lambda m: f"{decimal(m[1], None)} foot {decimal(m[2], None)}"),
    (re.compile(r"\b(half|quarters?|eighths?|thirds?)[\"″](?= (?:x|by|×) |[.,;:)]|$)"), r"\1 inches"),
    (re.compile(r"(?<=\d)[\"″](?= (?:x|by|×) |[.,;:)]|$)"), _inches),
    (re.compile(r"(?<=\d)[\"″](?= ?[A-Za-z])"), _inches),
    (re.compile(r"(?<=inches) [x×] (?=\d)"), " by "),
)
COUNTED: Rules = (
    (re.compile(rf"{NUMBER} ?(?P<unit>{_LETTERS})/(?P<every>\d+ ?)?(?P<per>{_LETTERS}|m²|m³)(?![\w/])"), _per),
    (re.compile(r"(?<![\w.])(\d{2,3})(?: ?(F)|C)\b(?=\.?(?:\s|[,;:)!?]|$))"), lambda m: f"{m[1]}°{m[2] or 'C'}"),
    (re.compile(rf"{NUMBER}[ -]?(?P<unit>{_SIGNS})(?P<stop>)(?![\w²³/])"),
     _unit),
    (re.compile(rf"{NUMBER} ?(?P<unit>{_LETTERS})(?![\w²³/])(?P<stop>\.)?"
                r"(?!(?<=\.)\w)"), _unit),
)  # fmt: skip

"""Whether somebody is in danger, by the words of one line.

Pure: text in, a verdict out. A small model takes `my child has been kidnapped` for sorrow and `mayday` for a greeting;
what it says then must not hang on that. It is meant to be right where life is at stake, not to be complete: a line that
it misses gets whatever the model says.
"""

from __future__ import annotations

import re
from typing import Final

_HELPERS: Final = (
    "(?:ambulance|coast ?guard|cops|emergency (?:doctor|help|number|services?)"
    "|fire ?(?:brigade|department|fighters|men)|medical help|nine one one|paramedics?|poison control|police"
    "|triple (?:nine|zero|9|0))"
)
_INTRUDER: Final = "(?:burglars?|intruders?|robbers?|thief|thieves)"
_SOMEBODY: Final = (
    "(?:(?:my|our|the|a|an|some) (?:[a-z]+ )?[a-z]+|anybody|baby|child|dad|daddy|grandma|grandpa|he|i|mum|mummy|mom"
    "|mommy|nobody|she|somebody|someone|they|we)"
)
_HAS: Final = "(?:'s| is| are| am| was| has| have|'ve|'m| has been| got| just)?"

_FOR_HELP: Final = (
    f"(?:alert|bring|call|dial|fetch|get|need|phone|ring|send|want)\\b.{{0,24}}\\b{_HELPERS}",
    "(?:bring|call|dial|phone|ring) (?:911|9 1 1|999|9 9 9|112)",
    "(?:call|fetch|send)(?: for)? help",
    "(?:an|it's|medical) emergency",
    "matter of life and death",
    "report an? (?:accident|crime|fire|robbery)",
    "in (?:great |real )?danger$",
)
_OF_THE_BODY: Final = (
    "(?:can't|cannot|isn't|not|stopped|trouble) breath(?:e|ing)|no pulse|heart (?:has )?stopped",
    "(?:can't|cannot|can not) (?:feel (?:my|his|her)|get up|move (?:my|his|her)|reach the phone)",
    "(?:won't|doesn't|does not|will not) wake up|(?:is|'s|fell|found [a-z]+) unconscious",
    f"{_SOMEBODY}{_HAS} (?:(?<!nose is )bleeding|choking|collapsed|electrocuted|fainted|fitting|passed out|poisoned)",
    f"{_SOMEBODY}{_HAS} hit by a car",
    f"{_SOMEBODY}{_HAS} (?:drown(?:ed|ing)(?!.* out)|dying(?! (?:for|of|to)))",
    "(?:am|got|i'm|is|was) (?:badly )?hurt$|bleeding (?:badly|heavily|a lot|and)",
    "chest (?:hurts|pains?)|having a (?:heart attack|seizure|stroke)|overdosed?",
    "i think (?:i|he|she|my [a-z]+) (?:have|has|had)(?: had| having)? a (?:heart attack|stroke)",
    "(?:swallowed|drank|ate) (?:[a-z]+ )?(?:poison|bleach|pills|tablets|battery)|too many (?:pills|tablets)",
    "(?:i'm|i am) in labou?r|waters? (?:has |have |just )*(?:broke|broken)",
    "(?:had|was|been|there's been) an? (?:[a-z]+ )?(?:accident|crash)$",
)
_OF_PEOPLE: Final = (
    f"{_SOMEBODY}{_HAS} (?:kidnapped|stabbed)",
    f"{_SOMEBODY}(?:'s| has|'ve| have)? (?:been |got )?(?:mugged|robbed me|shot (?:at|me)|attacked me)",
    "i(?:'ve| have|'m| was| am)(?: just)?(?: been| being)? (?:attacked|followed|mugged|robbed|shot|trapped)",
    "(?:he|man|she|somebody|someone)(?:'s| has| with)?(?: got)? a (?:bomb|gun|knife|pistol|rifle)",
    f"{_INTRUDER}\\b.*\\b(?:at|in|downstairs|outside|upstairs)|think there(?:'s| is) an? {_INTRUDER}",
    f"(?:there(?:'s| is| are| was)|we have) (?:an? |some )?{_INTRUDER}",
    "(?:broke|broken|breaking|breaks) in(?:to (?:my|our|the) [a-z]+)?$",
    "(?:somebody|someone|stranger|man|men) (?:is |'s )?(?:in|inside) (?:my|our|the) (?:house|home|flat|room)",
    "(?:had|was|been|there's been) a shooting$",
)
_OF_FIRE: Final = (
    "(?:there(?:'s| is| are| was)|we have) (?:a |some )?(?:fire|gas leak|smoke)|smell (?:gas|smoke)|gas leak",
    "(?:is|are|'s|has caught|caught) (?:on )?fire$|(?:house|kitchen|car|oven|roof) (?:is |'s )?burning",
)
_CRIES: Final = re.compile(
    "(?:(?:alright|hey|help|now|oh|okay|please|quick|quickly|uh|um|well) )*"
    f"(?:{_HELPERS}|emergency|fire|help help|mayday|rescue|s ?o ?s|save me|thief)"
    "(?: (?:fire|help|mayday|now|please|quick|quickly))*"
)
"""All of a line."""
_DANGER: Final = re.compile(rf"\b(?:{'|'.join((*_FOR_HELP, *_OF_THE_BODY, *_OF_PEOPLE, *_OF_FIRE))})(?!\w)")
_ASKED_OR_MADE_UP: Final = re.compile(
    r"\b(?:add|alarm|article|book|calendar|dream|drill|essay|film|game|if|joke|last|list|mean|means|more|movie|news|note"
    r"|novel|poem|practice|read|remember|remind|reminder|repeat|say|show|song|spell|story|timer|week|word|year|years"
    r"|yesterday)\b"
    r"|^(?:(?:and|hey|oh|okay|so|uh|um|well) )?"
    r"(?:am|are|did|do|does|how|is|was|were|what|what's|when|where|which|who|who's|why)\b"
)
"""A line with one of these words, or that begins as a question, asks about a danger, or tells of one that is over."""


def is_emergency(line: str) -> bool:
    """Whether somebody calls for help or tells of a danger to life that is there. `line`: in small letters, without
    marks."""
    danger = _CRIES.fullmatch(line) or _DANGER.search(line)
    return danger is not None and _ASKED_OR_MADE_UP.search(line) is None

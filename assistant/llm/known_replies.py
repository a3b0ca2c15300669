"""What a small model may say where it calls nothing, by the words that were said.

Pure: lines in, replies out. The small model has some two hundred replies by heart and knows which kind is wanted; but
beside names that it never met it slips: it repeats a request as if it were to be said after, keeps a question in mind,
names a word that nobody said, or is sorry where somebody needs an ambulance. A larger model knows better and is left
alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from assistant.contracts import Line
from assistant.llm.emergency import is_emergency
from assistant.llm.known_tools import ORDERS
from assistant.llm.recall import ASKS, OF_WORDS, Recall, what_was_told
from assistant.llm.tool_retrieval import COMMON, spoken, words_of

AS_LOUD = "I cannot change the volume. Please use the control on your device."
AS_FAST = "I cannot change my pace. That is set in the settings."
NO_DOCTOR = "I cannot give medical advice. Please ask a doctor."
NO_WRITER = "I cannot {}, because I am too small. A larger model could."
ENGLISH_ONLY = "I speak English only. A larger model speaks many languages."
EMERGENCY = "I cannot make calls. Please call your emergency number right now."
SWITCHED_OFF = "I cannot do that here, because my tools are switched off."
"""What it was taught to say where it would call a tool and none is declared (`recipes/texts/talks.py`)."""
TOO_SMALL, NOT_ONLINE = "I am too small to know about", "I cannot look up"
"""How it begins to say that it knows nothing of a thing, or where to find it …"""
REFUSALS = (f"{TOO_SMALL} {{}}. A larger model could tell you.", f"{NOT_ONLINE} {{}}, because I do not go online.")
"""… and all of it (`recipes/texts/smalltalk.txt`)."""
AFTER_THEM, SAID_BACK, UNTOLD, WILL, SORRY, CAN_PUT, MEET, OFF = (
    "I say", "You said", "You have not", "I will", "I am sorry", "I can put", "Nice to", "I cannot do that here",
)  # fmt: skip
"""How it begins to say something after the user, to say what they said or did not, to keep it, to comfort, to offer its
list, to greet, and that tools are switched off."""
CANNOT = "I cannot"
CANNOT_DO = (
    "change my pace.", "change the volume.", "do that.", "do that here,", "give medical advice.", "look that up,",
    "make calls or", "make calls.", "order or book anything.", "play music here.", "sing,", "write texts or programs,",
)  # fmt: skip
"""How it begins to say that it cannot do something, and what it says so of without the user's words."""
NAMELESS = ("I am too small to know that", "I cannot look that")
"""How it begins the same without the thing's name, where there is one to say."""
STORIES = ("Once", "There")
LONGEST_TOPIC = 8
"""Words."""

_POINTS: Final = frozenset({"a", "an", "my", "our", "the", "their", "this", "your"})
_YOURS: Final = {"my": "your", "me": "you", "i": "you", "us": "you", "our": "your"}
_NAMED: Final = re.compile(
    r"\b(?:about|an?|how (?:many|much)|in|my|of|on|our|the|their)"
    r" (?!(?:all|internet|it|me|net|online|that|them|this|us|web|wikipedia|you)\b)\w"
    r"|\w [A-Z]|(?<!\S)[a-z]{3,}[^s\W]s(?!\S)"
)
"""What a thing's name stands behind, or looks like."""
_SEARCHES: Final = words_of("browse browser google internet net online search web website wikipedia")
"""What is searched with is not what is searched for."""
_TO_BE_SAID: Final = words_of(
    "after aloud announce copy copycat echo exactly express hear imitate line loudly mimic mouth out parrot practice "
    "practise pronounce read recite repeat say saying shout speak talk tell text utter voice whisper word"
)
_TO_BE_WRITTEN: Final = words_of(
    "complete compose correct draft finish paraphrase proofread rephrase rewrite shorten summarize translate write"
)
_BACK: Final = ASKS | OF_WORDS | words_of("again back command sentence thing word")
_KEPT_OR_AGAIN: Final = OF_WORDS | {"again", "remember"}
_ASKS: Final = re.compile(
    r"\b(?:can|could|do|may|must|shall|should) (?:i|we)\b|^(?:since )?(?:how|what|when|where|which|who)"
    r"(?:'s| are| did| do| does| has| have| is| was| were)\b"
)
_TOPIC: Final = re.compile(
    r"\b(?:(?:a|some|the) (?:fan of|latest (?:on|research)|project on)|(?:lead|top) (?:news|story|stories)"
    r"|(?:help me|like to|need to|trying to|want to) understand|(?:learn|more|teach me) about|interested in"
    r"|(?:curious|essay|learning|reading|studying|writing) (?:about|on)|define|explain|fill me in)\b"
)
"""Who says so wants to know something."""
_LANGUAGE: Final = re.compile(
    r"\b(?:interpret (?:for|what)|translating|translation|translator)\b"
    r"|\b(?:any|in|into|is|learn|learning|of|some|speak|speaking|speaks|talk|teach \w+|understand) "
    r"(?:arabic|cantonese|chinese|czech|danish|dutch|finnish|french|german|greek|hebrew|hindi|hungarian|irish|italian"
    r"|japanese|korean|latin|mandarin|norwegian|polish|portuguese|russian|spanish|swedish|thai|turkish|ukrainian|urdu"
    r"|vietnamese|welsh)(?= (?:again|difficult|easy|for|hard|instead|now|please|thanks|today|too|with|word)|$)"
)
_WRITING: Final = re.compile(
    r"\b(?:complete|compose|continue|correct|draft|edit|finish|improve|paraphrase|polish|proofread|rephrase|rewrite"
    r"|shorten|summarize|write)(?: me| us)? (?:a|an|my|our|some|the|this)(?: \w+){0,2} "
    r"(?:application|article|blog|book|chapter|code|diary|essay|function|homework|novel|page|paper|paragraph|post"
    r"|program|report|review|script|sentence|speech|text|thesis|website)\b"
)
_MEDICAL: Final = re.compile(
    r"\b(?:any|anything|are|can|could|does|diagnose|give|got|how|is|need|prescribe|recommend|should|tell|what|what's"
    r"|which)\b.*\b(?:antibiotics|aspirin|cure|diagnosis|disease|dose|ibuprofen|illness|medication|medicine|painkiller"
    r"|paracetamol|prescription|remedy|side effects|symptoms|tablets?"
    r"|(?:for|against|with) (?:a |my )?(?:\w+ ache|back|cold|cough|fever|headache|toothache))\b"
)
_LOUDNESS: Final = re.compile(
    r"^(?!.*\b(?:again|answer|am i too quiet)\b).*"
    r"\b(?:louder|quieter|speak up$|talk quietly|too (?:loud|quiet)|volume|(?:are you|stop) whispering)\b"
)
_PACE: Final = re.compile(
    r"^(?!.*\b(?:again|answer)\b).*\b(?:slow(?:er)? down|slower|speed up|too fast"
    r"|(?:speaking|speech|talking|your) (?:pace|rate|speed)"
    r"|(?:speak|speaking|talk|talking)(?: more)? (?:fast(?:er)?|quick(?:er|ly)|slowly))\b"
)
_AGAIN: Final = re.compile(
    r"(?:\b(?:(?:have|hear|say) (?:it|that|the same thing|your answer)(?: over)?"
    r" (?:again|another time|(?:once|one) more(?: time)?)"
    r"|(?:repeat|repeating|restate) (?:it|that|yourself|your answer|what you (?:just )?said)"
    r"|(?:go over|run) that (?:past me )?again|give (?:it|that) to me again|tell me (?:that )?again"
    r"|say (?:it|that) (?:a bit )?(?:louder|slower)|what (?:did|had|were) you (?:just )?(?:say|said|saying)"
    r"|(?:can|could|did)n't(?: quite| really)? (?:catch|get|hear|make out|understand) (?:it|that|you|what you said)"
    r"|couldn't (?:quite )?make (?:it|that) out|missed (?:it|that|your answer))"
    r"|^(?:(?:and|oh|pardon me|slow down|sorry|uh|um|wait|well|wot) )*"
    r"(?:(?:come|say) again|w[ho]at was that(?: you (?:just )?said)?))"
    r"(?: (?:again|for me|just now|louder|mate|now|once|one more time|please|slower|thanks|thank you|then|will you"
    r"|would you))*$"
)
"""Who says so wants to hear the last reply, whatever was said before it in the line."""
_IN_HAND: Final = re.compile(
    r"\b(?:add|alarm|called|convert|(?:did|had|have) i|how many|list|minutes?|notes?|remember|remind|reminder|spell"
    r"|store|story|timer)\b|^my (?!\w+ homework)|\d"
)
"""A line with one of these is about what the assistant does or was told."""


@dataclass(frozen=True, slots=True)
class Sayable:
    """What may be said to the last line.

    told     of what was told
    only     the reply, where there is but one
    unmeant  how none begins
    asked    the line
    again    the refusals that were said before
    """

    told: Recall = field(default_factory=Recall)
    only: str = ""
    unmeant: tuple[str, ...] = ()
    asked: str = ""
    again: tuple[str, ...] = ()

    def refusals(self) -> list[str]:
        """All ways to say that a thing is not known."""
        things = _names(self.asked, COMMON | _SEARCHES)
        return [*(refusal.format(thing) for thing in things for refusal in REFUSALS), *self.again]

    def cannot(self) -> list[str]:
        """All ways to begin to say that something cannot be done."""
        deeds = _names(self.asked)
        deeds += [f"write {deed}" for deed in deeds if deed.partition(" ")[0] in _POINTS]
        begun = (*CANNOT_DO, *(f"{deed}{end}" for deed in deeds for end in ".,"))
        texts = [*self.refusals(), *(f"{CANNOT} {what}" for what in begun)]
        return [text for text in texts if not text.startswith(self.unmeant)]


def what_may_be_said(lines: Sequence[Line], tools: bool) -> Sayable:
    """By the last line, if it is the user's, and what came before it. `tools`: whether any are declared."""
    if not lines or lines[-1].role != "user":
        return Sayable()
    asked = " ".join(spoken(lines[-1].text))
    line, words, before = asked.lower(), words_of(asked), words_of("\n".join(it.text for it in lines[-4:-1]))
    about = _TOPIC.search(line) is not None and "remember" not in words
    writes = not words.isdisjoint(_TO_BE_WRITTEN) and words.isdisjoint(ASKS)
    orders = ORDERS.match(line) is not None
    bars = {
        AFTER_THEM: (words | before).isdisjoint(_TO_BE_SAID),
        SAID_BACK: words.isdisjoint(_BACK) or writes,
        UNTOLD: writes,
        WILL: about or orders or (_ASKS.search(line) is not None and words.isdisjoint(_KEPT_OR_AGAIN)),
        SORRY: about or orders,
        CAN_PUT: about or orders,
        MEET: orders,
        OFF: tools or about,
        **dict.fromkeys(STORIES, about),
        **dict.fromkeys(NAMELESS, _NAMED.search(asked) is not None),
    }
    unmeant = tuple(begin for begin, bar in bars.items() if bar)
    again = tuple(reply for reply in _replies(lines) if reply.startswith((TOO_SMALL, CANNOT)))
    told, only = what_was_told(lines), _only(line, lines[:-1])
    only = only if only == EMERGENCY or not told.known else ""
    return Sayable(told, only, unmeant, asked, again)


def _only(asked: str, before: Sequence[Line]) -> str:
    """What is said for certain, if anything is. What was broken off is not said again."""
    if is_emergency(asked):
        return EMERGENCY
    if _AGAIN.search(asked) and (last := _replies(before)[-1:]) and last[0].endswith((".", "?", "!")):
        return last[0]
    if _IN_HAND.search(asked):
        return ""
    if wanted := _WRITING.search(asked):
        return NO_WRITER.format(_said_back(wanted[0].split()))
    found = {ENGLISH_ONLY: _LANGUAGE, NO_DOCTOR: _MEDICAL, AS_LOUD: _LOUDNESS, AS_FAST: _PACE}
    return next((reply for reply, asks in found.items() if asks.search(asked)), "")


def _replies(lines: Sequence[Line]) -> list[str]:
    return [line.text for line in lines if line.role == "assistant" and line.text]


def _said_back(words: Sequence[str]) -> str:
    """`finish my sentence`, `finish your sentence`."""
    return " ".join(_YOURS.get(word.lower(), word) for word in words)


def _names(asked: str, idle: frozenset[str] = frozenset()) -> list[str]:
    """Words in a row that do not begin with an idle one, as they stand and as they are said back."""
    words = [word.removesuffix("'s") for word in spoken(asked)]
    rows = [
        words[begin:end]
        for begin in range(len(words))
        for end in range(begin + 1, min(begin + LONGEST_TOPIC, len(words)) + 1)
        if (words[begin].lower() in _POINTS or not words_of(words[begin]) <= idle) and words[end - 1] not in _POINTS
    ]
    return [*dict.fromkeys(it for row in rows for it in (" ".join(row), _said_back(row)))]

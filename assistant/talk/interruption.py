"""What speech over a reply does to it, and what the front's own cancel does, as a table.

A row is the reply's phase, what was noticed, and the manner in which this front is interrupted; it gives the
actions in order. `turn_taking.step` asks it, and every row can be asked: a test walks there. What it may ask and finds
no row for, a cancel where nothing runs, is an error of the front and is answered before.

Manners: `stop`, server detection as the protocol has it: the first sign of speech stops the reply. `judge`, semantic
detection: a front with plain protocol semantics hears of speech with the verdict and not before, because it would drop
its sound. `duck`, a front that can lower, hold and resume the sound. `listen`, interruption switched off, lets the
reply go on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

from assistant.events import SemanticVad, ServerVad, Settings


class Phase(Enum):
    """Where the reply is. PRIVATE: being made, nothing audible yet. PLAYED_OUT: made, still sounding. JUDGED: speech
    over it waits for its verdict, whether or not the reply is made by now."""

    NONE = auto()
    PRIVATE = auto()
    SOUNDING = auto()
    JUDGED = auto()
    PLAYED_OUT = auto()


class Signal(Enum):
    """What was noticed. OVERLAP: speech began. LIKELY: it is no nod so far. INTERRUPTION and BACKCHANNEL: the verdict
    on it. CLEARED: the front took that sound back."""

    OVERLAP = auto()
    LIKELY = auto()
    INTERRUPTION = auto()
    BACKCHANNEL = auto()
    TURN_ENDED = auto()
    CLEARED = auto()
    CLIENT_CANCEL = auto()


class Manner(Enum):
    STOP = auto()
    JUDGE = auto()
    DUCK = auto()
    LISTEN = auto()


class Action(Enum):
    """JUDGE waits for a verdict in this manner. STOP_REPLY ends it as cancelled; WITHDRAW_REPLY too, and makes it anew
    if it was stopped for nothing. STOP_PLAYER tells a front that can; SET_ASIDE takes the user's sound out of the turns
    and keeps its words as a nod."""

    ANNOUNCE_SPEECH = auto()
    JUDGE = auto()
    DUCK = auto()
    HOLD = auto()
    RESUME = auto()
    STOP_REPLY = auto()
    WITHDRAW_REPLY = auto()
    STOP_PLAYER = auto()
    SET_ASIDE = auto()


A = Action
TABLE: dict[tuple[Phase, Signal, Manner], tuple[Action, ...]] = {
    (Phase.NONE, Signal.OVERLAP, Manner.STOP): (A.ANNOUNCE_SPEECH,),
    (Phase.NONE, Signal.OVERLAP, Manner.JUDGE): (A.ANNOUNCE_SPEECH,),
    (Phase.NONE, Signal.OVERLAP, Manner.DUCK): (A.ANNOUNCE_SPEECH,),
    (Phase.NONE, Signal.OVERLAP, Manner.LISTEN): (A.ANNOUNCE_SPEECH,),
    # Nothing was heard of the reply yet: going on would answer half a question. Whoever judges finds out whether it was
    # a cough; then the question was whole.
    (Phase.PRIVATE, Signal.OVERLAP, Manner.STOP): (A.ANNOUNCE_SPEECH, A.STOP_REPLY),
    (Phase.PRIVATE, Signal.OVERLAP, Manner.JUDGE): (A.JUDGE, A.WITHDRAW_REPLY),
    (Phase.PRIVATE, Signal.OVERLAP, Manner.DUCK): (A.JUDGE, A.WITHDRAW_REPLY),
    (Phase.PRIVATE, Signal.OVERLAP, Manner.LISTEN): (A.ANNOUNCE_SPEECH,),
    (Phase.SOUNDING, Signal.OVERLAP, Manner.STOP): (A.ANNOUNCE_SPEECH, A.STOP_REPLY),
    (Phase.SOUNDING, Signal.OVERLAP, Manner.JUDGE): (A.JUDGE,),
    (Phase.SOUNDING, Signal.OVERLAP, Manner.DUCK): (A.JUDGE, A.DUCK),
    (Phase.SOUNDING, Signal.OVERLAP, Manner.LISTEN): (A.ANNOUNCE_SPEECH,),
    # The reply is made but still plays at the front, which stops its own player and reports what was heard.
    (Phase.PLAYED_OUT, Signal.OVERLAP, Manner.STOP): (A.ANNOUNCE_SPEECH,),
    (Phase.PLAYED_OUT, Signal.OVERLAP, Manner.JUDGE): (A.JUDGE,),
    (Phase.PLAYED_OUT, Signal.OVERLAP, Manner.DUCK): (A.JUDGE, A.DUCK),
    (Phase.PLAYED_OUT, Signal.OVERLAP, Manner.LISTEN): (A.ANNOUNCE_SPEECH,),
    # What is judged is judged in the manner in which it began, whatever the settings say by then: else a lowered sound
    # would stay low for ever. Speech anew, behind some that never ended (detection was switched off and on), is judged
    # like the first.
    (Phase.JUDGED, Signal.OVERLAP, Manner.JUDGE): (),
    (Phase.JUDGED, Signal.OVERLAP, Manner.DUCK): (),
    (Phase.JUDGED, Signal.LIKELY, Manner.JUDGE): (),
    (Phase.JUDGED, Signal.LIKELY, Manner.DUCK): (A.HOLD,),
    (Phase.JUDGED, Signal.INTERRUPTION, Manner.JUDGE): (A.ANNOUNCE_SPEECH, A.STOP_REPLY),
    (Phase.JUDGED, Signal.INTERRUPTION, Manner.DUCK): (A.ANNOUNCE_SPEECH, A.STOP_PLAYER, A.STOP_REPLY),
    (Phase.JUDGED, Signal.TURN_ENDED, Manner.JUDGE): (A.ANNOUNCE_SPEECH, A.STOP_REPLY),
    (Phase.JUDGED, Signal.TURN_ENDED, Manner.DUCK): (A.ANNOUNCE_SPEECH, A.STOP_PLAYER, A.STOP_REPLY),
    (Phase.JUDGED, Signal.BACKCHANNEL, Manner.JUDGE): (A.SET_ASIDE,),
    (Phase.JUDGED, Signal.BACKCHANNEL, Manner.DUCK): (A.RESUME, A.SET_ASIDE),
    (Phase.JUDGED, Signal.CLEARED, Manner.JUDGE): (),
    (Phase.JUDGED, Signal.CLEARED, Manner.DUCK): (A.RESUME,),
    # A front that cancels stops its own player; only a lowered one waits to be told what becomes of its sound.
    (Phase.PRIVATE, Signal.CLIENT_CANCEL, Manner.STOP): (A.STOP_REPLY,),
    (Phase.PRIVATE, Signal.CLIENT_CANCEL, Manner.JUDGE): (A.STOP_REPLY,),
    (Phase.PRIVATE, Signal.CLIENT_CANCEL, Manner.DUCK): (A.STOP_REPLY,),
    (Phase.PRIVATE, Signal.CLIENT_CANCEL, Manner.LISTEN): (A.STOP_REPLY,),
    (Phase.SOUNDING, Signal.CLIENT_CANCEL, Manner.STOP): (A.STOP_REPLY,),
    (Phase.SOUNDING, Signal.CLIENT_CANCEL, Manner.JUDGE): (A.STOP_REPLY,),
    (Phase.SOUNDING, Signal.CLIENT_CANCEL, Manner.DUCK): (A.STOP_REPLY,),
    (Phase.SOUNDING, Signal.CLIENT_CANCEL, Manner.LISTEN): (A.STOP_REPLY,),
    (Phase.JUDGED, Signal.CLIENT_CANCEL, Manner.JUDGE): (A.STOP_REPLY,),
    (Phase.JUDGED, Signal.CLIENT_CANCEL, Manner.DUCK): (A.STOP_PLAYER, A.STOP_REPLY),
}


def actions(phase: Phase, signal: Signal, manner: Manner) -> tuple[Action, ...]:
    return TABLE.get((phase, signal, manner), ())


def manner_of(settings: Settings) -> Manner:
    """How this front is interrupted."""
    detection = settings.turn_detection
    if isinstance(detection, ServerVad | SemanticVad) and not detection.interrupt_response:
        return Manner.LISTEN
    if settings.duck:
        return Manner.DUCK
    return Manner.JUDGE if isinstance(detection, SemanticVad) else Manner.STOP


@dataclass(frozen=True, slots=True)
class Overheard:
    """What is known of speech over a reply: how long it lasts, how long it has paused, its words so far, whether they
    are `read` up to that pause, how `sure` the detector is that it is speech, 0 … 1, whether it `goes_on` with a turn
    that may have been taken too early: then any word of it does, however short; and whether it `nodded`: a look before
    this one found nothing but a nod."""

    speech_ms: float
    silence_ms: float
    words: str
    read: bool = False
    sure: float = 1.0
    goes_on: bool = False
    nodded: bool = False


SHORTEST_MS = 64.0
"""A shorter sound is a click, whatever words are read into it."""
SURE = 0.67
"""Below this it is a cough or a laugh, whatever words are read into it. Fitted on the dev set of `recipes.turns`: all 3
coughs of actors have less, sentences that cut in have 0.69 and more."""
UNMISTAKABLE = 0.88
"""Below this it may be a laugh or a hum that was read as words: where nothing can be held, CERTAIN_MS of it are
waited for. With it the dev set's 13 coughs, laughs and hums of actors stop nothing there, without it 2 do; of 27 shouts
2 are not let in, without it none. Where it can be held, to wait until UNCLEAR_MS spares 1 laugh and costs 1 shout."""
SURE_OF_WORDS, MANY_WORDS = 0.4, 3
"""So much is enough where so many words were read: people who shout sound like no speech to the detector, coughs and
laughs of the dev set are not read as sentences."""
CERTAIN_MS, UNCLEAR_MS = 480.0, 720.0
"""A front that can waits in silence meanwhile, so its verdict has time until here, the longer where the words may be a
slow nod that was misread. Who pauses sooner has spoken, if two words were read up to there and are not a hum's."""
HUMS_BEGIN = frozenset(["and", "in", "the", "a", "an", "i'm", "my", "ma", "mama", "mom", "mum", "him", "thank"])
HUM_MS = 640.0
"""What ears write for the beginning of a hum ("And then", "In the me"), and until when nothing is stopped for it where
nothing can be held: with it 54 of the dev set's 57 nods, coughs, laughs and hums stop nothing there, without 48."""
CLEAR_WORDS = 4
"""So many words are not written for a hum, whatever the first of them is."""
STOPPING = frozenset(["stop", "wait", "no", "hold", "hang", "enough", "quiet"])
"""Words that count at the first look, …"""
SECOND_LOOK_MS = 290.0
"""… a single one with which people cut in from here on ("What" may become "Right"), two others too where nothing can be
held or nothing follows ("Love it" is a hum), …"""
STRAY_MS = 640.0
"""… and any other from here on: ears write some word ("Money", "Come") for any hum. At 480, with two words at the first
look, 84 of 136 nods in other words and voices stop nothing in a stock client, with these 94."""
CUTS_IN = frozenset(
    ["what", "who", "how", "when", "where", "why", "which", "can", "could", "would", "will", "tell", "please", "just",
     "sorry", "excuse", "set", "add", "actually", "but", "that's", "never", "not", "hey", "hello", "help", "cancel",
     "pause", "next", "skip", "again", "repeat", "louder", "undo", "something", "anything", "don't", "thanks"]
)  # fmt: skip
NODDED_MS = 800.0
"""Until here nothing is stopped for a word or two in whose place a nod was read before: of a laugh, and of a nod in an
accent, ears write another thing at each look ("Uh-huh", "With her", "But how?"), a sentence they go on with. At 1000 a
page lets 2 more of 96 nods in accents pass, and 4 more of 421 interruptions."""
LIKELY_AFTER_MS = 250.0
"""Who speaks this long over a reply means it, most likely: a front that can waits in silence from here on …"""
LIKELY_NOD_MS = 380.0
"""… and this long where the words so far begin as a nod does."""
LONGEST_NOD_MS = 1000.0
"""Longer speech with any other word is none: nobody should have to talk against a voice for longer."""
LONGEST_LAUGH_MS = 1600.0
"""The same where no word but a nod's is read: laughs of the dev set last 0.8 to 1.5 s, a slow "Okay, okay" 1.2."""
OVER_MS = 90.0
"""A silence that makes it probable that no more comes."""
UNREAD_MS = 600.0
"""How long the words of a short sound are waited for; then it counts as one without words."""
NODS = frozenset(
    ["uh", "huh", "um", "yeah", "yes", "yep", "yup", "okay", "ok", "right", "sure", "aha", "ah", "oh", "ooh", "i",
     "see", "really", "wow", "nice", "cool", "good", "great", "exactly", "true", "all", "alright", "ha", "heh", "ho",
     "mommy", "mom"]
)  # fmt: skip
"""The last two are what Moonshine writes for a hum."""
HUM_OR_LAUGH = re.compile(r"[mhn]+|(h[aeo]h?){2,}")
HUM = "Mm."
STOPS = frozenset(
    ["stop", "stop it", "stop that", "stop now", "stop please", "please stop", "okay stop", "wait", "wait wait",
     "wait a second", "wait a minute", "no", "no no", "no stop", "no wait", "hold on", "hang on", "enough",
     "that's enough", "okay that's enough", "quiet", "be quiet", "please be quiet", "shut up", "never mind",
     "stop talking", "silence", "pause"]
)  # fmt: skip


def bare_words(text: str) -> list[str]:
    """Lower-case words without the marks around them."""
    parts = text.lower().replace("…", " ").replace(".", " ").split()
    return [word for part in parts if (word := part.strip(",!?;:-–—\"'"))]


def is_nod(text: str) -> bool:
    """Words that say "I am listening", or none; each part of "uh-huh" is one."""
    parts = (part for word in bare_words(text) for part in word.split("-") if part)
    return all(part in NODS or HUM_OR_LAUGH.fullmatch(part) for part in parts)


def nod_words(heard: Overheard, before: str) -> str:
    """How it would stand in the transcript as a nod, `before` having been read: words that are a nod's, in whichever
    pass; a hum, of which ears write some word, as a hum; nothing of what is hardly a voice."""
    if not bare_words(heard.words):
        return before
    if is_nod(heard.words):
        return heard.words
    voice = heard.speech_ms >= SHORTEST_MS and heard.sure >= SURE
    return before or (HUM if voice else "")


def only_stops(text: str) -> bool:
    """The last sentence asks for nothing but silence; it is obeyed, and needs no answer in words."""
    sentences = [words for part in re.split(r"[.!?…]+", text) if (words := bare_words(part))]
    return bool(sentences) and " ".join(sentences[-1]) in STOPS


def _own_words(text: str) -> list[str]:
    """Behind the nods with which people begin ("Yeah, but …"); none if there is nothing but nods."""
    words = bare_words(text)
    begins = next((i for i, word in enumerate(words) if not is_nod(word)), len(words))
    return words[begins:]


def _meant(heard: Overheard) -> bool:
    """Its words are those of somebody who wants to speak."""
    words = _own_words(heard.words)
    if not words:
        return False
    if len(words) > 1 or words[0] in STOPPING or heard.goes_on:
        return True
    return heard.speech_ms >= (SECOND_LOOK_MS if words[0] in CUTS_IN else STRAY_MS)


def _certain(heard: Overheard, holds: bool) -> bool:
    """What is meant will not turn out to be a nod that was misread."""
    words, all_words = _own_words(heard.words), len(bare_words(heard.words))
    if words[0] in STOPPING or heard.goes_on:
        return True
    instead = heard.nodded and len(words) == all_words < MANY_WORDS and words[0] not in CUTS_IN
    if instead and heard.speech_ms < NODDED_MS:
        return False
    hum = words[0] in HUMS_BEGIN and all_words < CLEAR_WORDS
    clear = words[0] in CUTS_IN or (not hum and all_words >= MANY_WORDS)
    if not holds:
        if heard.sure < UNMISTAKABLE and heard.speech_ms < CERTAIN_MS:
            return False
        return clear or heard.speech_ms >= (HUM_MS if hum else SECOND_LOOK_MS)
    spoken = heard.read and heard.silence_ms >= OVER_MS and all_words > 1 and not hum
    if spoken and (clear or heard.speech_ms >= SECOND_LOOK_MS):
        return True
    return heard.speech_ms >= (CERTAIN_MS if clear else UNCLEAR_MS)


def verdict(heard: Overheard, holds: bool = False) -> Signal | None:
    """Whether speech over a reply is meant to stop it. None: too early to say. `holds`: the front falls silent for what
    is likely, and can go on at the same sample."""
    over = heard.silence_ms >= OVER_MS
    lasting = heard.silence_ms >= UNREAD_MS
    many = len(bare_words(heard.words)) >= MANY_WORDS
    if heard.speech_ms < SHORTEST_MS:
        return Signal.BACKCHANNEL if over else None
    if heard.sure < (SURE_OF_WORDS if many else SURE):
        # Who goes on may have said the beginning of a word, softly: to set that aside would cut the request.
        return Signal.BACKCHANNEL if (lasting if heard.goes_on else over) else None
    meant = _meant(heard)
    longest_ms = LONGEST_NOD_MS if _own_words(heard.words) else LONGEST_LAUGH_MS
    if (meant and _certain(heard, holds)) or heard.speech_ms >= longest_ms:
        return Signal.INTERRUPTION
    if over:
        # A short sound without a word is a cough, a laugh, or the echo of our own voice: nothing to stop for.
        read = heard.read and not (heard.goes_on and not heard.words)
        return Signal.BACKCHANNEL if read or lasting else None
    if meant:
        return Signal.LIKELY
    nod = any(map(is_nod, bare_words(heard.words)[:1]))
    return Signal.LIKELY if heard.speech_ms >= (LIKELY_NOD_MS if nod else LIKELY_AFTER_MS) else None

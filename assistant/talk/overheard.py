"""Decides whether speech over a reply is meant to stop it, from its length, the detector's certainty that somebody
speaks, and its words, if its language has a list.

The constants were fitted in English, on the dev set of `recipes.turns`. Without a list the words do not count: speech
that lasts is meant, and a shorter sound is not. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from assistant.talk.interruption import Signal
from assistant.text.talk_words import TalkWords


@dataclass(frozen=True, slots=True)
class Overheard:
    """Speech over a reply, as far as it is known.

    read      its words are all that was said before the silence
    sure      mean probability that it is speech, 0 … 1
    goes_on   it continues a turn that may have been taken too early: then any word counts, however short
    nodded    an earlier look found only a nod
    nothing_new   it continues a turn, and only the words of that were read
    agrees    the reply asks whether a call may run, and a look at this speech found a yes or did not; None: it does not
              ask. Ears often write another word behind a slow yes, and take it back
    """

    speech_ms: float
    silence_ms: float
    words: str
    read: bool = False
    sure: float = 1.0
    goes_on: bool = False
    nodded: bool = False
    nothing_new: bool = False
    agrees: bool | None = None


SHORTEST_MS = 64.0
"""A shorter sound is a click, whatever words are read into it."""
SURE = 0.67
"""A sound below this is a cough or a laugh, whatever words are read into it. All 3 coughs by actors in the dev set are
below it; sentences that cut in have 0.69 and more."""
UNMISTAKABLE = 0.88
"""A sound below this may be a laugh or a hum that was read as words: if the reply cannot be held, the verdict waits for
CERTAIN_MS of it. With this, none of the dev set's 13 coughs, laughs and hums by actors stops a reply in that case,
against 2 without it; of 27 shouts 2 are missed, against none. Waiting until UNCLEAR_MS when the reply can be held
spares 1 laugh and costs 1 shout."""
SURE_OF_WORDS, MANY_WORDS = 0.4, 3
"""This certainty is enough if this many words were read: to the detector, people who shout do not sound like speech,
and coughs and laughs of the dev set are not read as sentences."""
CERTAIN_MS, UNCLEAR_MS = 480.0, 720.0
"""A front that holds the reply waits in silence, so its verdict has this much time, the longer one if the words may be
a slow nod that was misread. A pause ends the wait, if two words were read up to it and they are not those of a hum."""
HUM_MS = 640.0
"""Words that may be the beginning of a hum ("And then", "In the me") do not stop a reply before this, if it cannot be
held: with this rule, 54 of the dev set's 57 nods, coughs, laughs and hums stop nothing in that case, against 48 without
it."""
CLEAR_WORDS = 4
"""Ears do not write this many words for a hum, whatever the first one is."""
SECOND_LOOK_MS = 290.0
"""Words of stopping count at the first look. A single word with which people cut in counts from here on ("What" may
become "Right"), and so do two other words if the reply cannot be held or nothing follows ("Love it" is a hum)."""
STRAY_MS = 640.0
"""Any other word counts from here on: ears write some word ("Money", "Come") for any hum. With this, 94 of 136 nods in
other words and voices stop nothing in a stock client; with 480, and two words at the first look, 84."""
NODDED_MS = 800.0
"""Before this, a word or two do not stop a reply if a nod was read in their place earlier: for a laugh, or a nod in an
accent, ears write another thing at each look ("Uh-huh", "With her", "But how?"), but they continue a sentence. With
1000, a page lets 2 more of 96 nods in accents pass, and misses 4 more of 421 interruptions."""
LIKELY_AFTER_MS = 250.0
"""Speech over a reply that lasts this long is probably meant: a front that can waits in silence from here on."""
LIKELY_NOD_MS = 380.0
"""The same if the words so far begin as a nod does."""
LONGEST_NOD_MS = 1000.0
"""Longer speech with any other word is not a nod: nobody should have to talk against a voice for longer than this."""
LONGEST_LAUGH_MS = 1600.0
"""The same if only words of a nod are read: laughs of the dev set last 0.8 to 1.5 s, a slow "Okay, okay" 1.2."""
OVER_MS = 90.0
"""After such a silence, probably no more comes."""
UNREAD_MS = 600.0
"""The time that the verdict waits for the words of a short sound; after that, it counts as a sound without words."""


def verdict(heard: Overheard, known: TalkWords | None, holds: bool = False) -> Signal | None:
    """Return whether speech over a reply is meant to stop it; None if it is too early to say. `holds`: the front falls
    silent for speech that is probably meant, and can go on at the same sample."""
    over = heard.silence_ms >= OVER_MS
    lasting = heard.silence_ms >= UNREAD_MS
    many = known is not None and len(bare_words(heard.words)) >= MANY_WORDS
    if heard.speech_ms < SHORTEST_MS:
        return Signal.BACKCHANNEL if over else None
    if heard.sure < (SURE_OF_WORDS if many else SURE):
        # It may be the soft beginning of a word that continues a turn: setting that aside would cut the request.
        return Signal.BACKCHANNEL if (lasting if heard.goes_on else over) else None
    signal = _by_time(heard, over, lasting) if known is None else _by_words(heard, known, holds, over, lasting)
    return Signal.INTERRUPTION if signal is Signal.BACKCHANNEL and heard.agrees else signal


def _by_time(heard: Overheard, over: bool, lasting: bool) -> Signal | None:
    """Judge it as a word that could be anything: not a nod from UNCLEAR_MS on. A continued turn is likely sooner. The
    words are waited for if they may be a yes."""
    if heard.speech_ms >= (LIKELY_AFTER_MS if heard.goes_on else UNCLEAR_MS):
        return Signal.INTERRUPTION
    if over:
        return Signal.BACKCHANNEL if heard.agrees is None or heard.read or lasting else None
    return Signal.LIKELY if heard.speech_ms >= LIKELY_AFTER_MS else None


def _by_words(heard: Overheard, known: TalkWords, holds: bool, over: bool, lasting: bool) -> Signal | None:
    meant = _meant(heard, known)
    longest_ms = LONGEST_NOD_MS if _own_words(heard.words, known) else LONGEST_LAUGH_MS
    if (meant and _certain(heard, known, holds)) or heard.speech_ms >= longest_ms:
        return Signal.INTERRUPTION
    if over:
        # A short sound without a word is a cough, a laugh, or the echo of our own voice: not a reason to stop.
        read = heard.read and (heard.nothing_new or not (heard.goes_on and not heard.words))
        return Signal.BACKCHANNEL if read or lasting else None
    if meant:
        return Signal.LIKELY
    nod = any(is_nod(word, known) for word in bare_words(heard.words)[:1])
    return Signal.LIKELY if heard.speech_ms >= (LIKELY_NOD_MS if nod else LIKELY_AFTER_MS) else None


def _meant(heard: Overheard, known: TalkWords) -> bool:
    """Whether its words are those of somebody who wants to speak."""
    words = _own_words(heard.words, known)
    if not words:
        return False
    if len(words) > 1 or words[0] in known.stopping or heard.goes_on:
        return True
    return heard.speech_ms >= (SECOND_LOOK_MS if words[0] in known.cuts_in else STRAY_MS)


def _certain(heard: Overheard, known: TalkWords, holds: bool) -> bool:
    """Whether this speech is meant for certain, and cannot turn out to be a misread nod."""
    words, all_words = _own_words(heard.words, known), len(bare_words(heard.words))
    if words[0] in known.stopping or heard.goes_on:
        return True
    instead = heard.nodded and len(words) == all_words < MANY_WORDS and words[0] not in known.cuts_in
    if instead and heard.speech_ms < NODDED_MS:
        return False
    hum = words[0] in known.hums_begin and all_words < CLEAR_WORDS
    clear = words[0] in known.cuts_in or (not hum and all_words >= MANY_WORDS)
    if not holds:
        if heard.sure < UNMISTAKABLE and heard.speech_ms < CERTAIN_MS:
            return False
        return clear or heard.speech_ms >= (HUM_MS if hum else SECOND_LOOK_MS)
    spoken = heard.read and heard.silence_ms >= OVER_MS and all_words > 1 and not hum
    if spoken and (clear or heard.speech_ms >= SECOND_LOOK_MS):
        return True
    return heard.speech_ms >= (CERTAIN_MS if clear else UNCLEAR_MS)


# ------------------------------------------------------------------------------------------------ words


def bare_words(text: str) -> list[str]:
    """Lower-case words without the marks around them."""
    parts = text.lower().replace("…", " ").replace(".", " ").split()
    return [word for part in parts if (word := part.strip(",!?;:-–—\"'"))]


_WORD = re.compile(r"\d+|(?<![^\W\d])[^\W\d_](?:[.\s]+[^\W\d_]\b)+|[^\W\d_]+(?:['’][^\W\d_]+)*")
"""Figures stand apart from letters, and letters that are spelled ("a m") are one word."""


def words_behind(text: str, before: str) -> str:
    """The words of a text behind those of an earlier reading of its beginning. That may be written otherwise by now, in
    fewer words or in more ("seven a m", "7am"), so it ends where the fewest words differ."""
    earlier = [_plain(word) for word in _WORD.finditer(before)]
    costs = list(range(len(earlier) + 1))
    """Differences between the text so far and each beginning of the earlier words."""
    fewest, end = costs[-1], 0
    for word in _WORD.finditer(text):
        above, costs[0] = costs[0], costs[0] + 1
        for i, other in enumerate(earlier, 1):
            above, costs[i] = costs[i], min(above + (_plain(word) != other), costs[i] + 1, costs[i - 1] + 1)
        if costs[-1] <= fewest:
            fewest, end = costs[-1], word.end()
    return " ".join(re.sub(r"^\S*", "", text[end:]).split()) if end else text


def _plain(word: re.Match[str]) -> str:
    return re.sub(r"[.\s]", "", word[0].lower())


def is_nod(text: str, known: TalkWords) -> bool:
    """Whether all words say "I am listening", or there are none; each part of "uh-huh" is one."""
    parts = (part for word in bare_words(text) for part in word.split("-") if part)
    return all(part in known.nods or re.fullmatch(known.hum_or_laugh, part) for part in parts)


def only_nods(text: str, known: TalkWords | None) -> bool:
    """Whether there are words, and all of them are a nod's."""
    return known is not None and bool(bare_words(text)) and is_nod(text, known)


def nod_words(heard: Overheard, before: str, known: TalkWords | None) -> str:
    """Return the words of a nod for the transcript, if `before` was read earlier: the words of a nod, from whichever
    pass had them; a hum, if ears wrote some word for one; nothing if it is hardly a voice. Without a list the words
    stand as they were read."""
    if not bare_words(heard.words):
        return before
    voice = heard.speech_ms >= SHORTEST_MS and heard.sure >= SURE
    if known is None:
        return heard.words if voice else before
    if is_nod(heard.words, known):
        return heard.words
    return before or (known.hum if voice else "")


def only_stops(text: str, known: TalkWords | None) -> bool:
    """Whether the last sentence asks only for silence; it is obeyed, and needs no answer in words."""
    sentences = [words for part in re.split(r"[.!?…]+", text) if (words := bare_words(part))]
    return known is not None and bool(sentences) and " ".join(sentences[-1]) in known.stops


def _own_words(text: str, known: TalkWords) -> list[str]:
    """The words behind the nods with which people begin ("Yeah, but …"); none if there are only nods."""
    words = bare_words(text)
    begins = next((i for i, word in enumerate(words) if not is_nod(word, known)), len(words))
    return words[begins:]

"""English words that steer a talk, as ears write them."""

from __future__ import annotations

from assistant.text.talk_words import TalkWords

NODS = frozenset(
    ["uh", "huh", "um", "yeah", "yes", "yep", "yup", "okay", "ok", "right", "sure", "aha", "ah", "oh", "ooh", "i",
     "see", "really", "wow", "nice", "cool", "good", "great", "exactly", "true", "all", "alright", "ha", "heh", "ho",
     "mommy", "mom"]
)  # fmt: skip
"""The last two are what Moonshine writes for a hum."""
CUTS_IN = frozenset(
    ["what", "who", "how", "when", "where", "why", "which", "can", "could", "would", "will", "tell", "please", "just",
     "sorry", "excuse", "set", "add", "actually", "but", "that's", "never", "not", "hey", "hello", "help", "cancel",
     "pause", "next", "skip", "again", "repeat", "louder", "undo", "something", "anything", "don't", "thanks"]
)  # fmt: skip
STOPS = frozenset(
    ["stop", "stop it", "stop that", "stop now", "stop please", "please stop", "okay stop", "wait", "wait wait",
     "wait a second", "wait a minute", "no", "no no", "no stop", "no wait", "hold on", "hang on", "enough",
     "that's enough", "okay that's enough", "quiet", "be quiet", "please be quiet", "shut up", "never mind",
     "stop talking", "silence", "pause"]
)  # fmt: skip
AGREEING = frozenset(
    f"{first} {more}".strip()
    for first in ("yes", "yeah", "yep", "sure", "okay", "ok", "go ahead", "do it", "do that", "please do", "yes do it",
                  "yes do that", "yes go ahead", "yes please do", "you may", "yes you may", "of course", "that's fine",
                  "yes that's fine", "correct", "yes that's right")
    for more in ("", "please")
)  # fmt: skip
BOUND = frozenset(
    ["a", "an", "the", "my", "your", "our", "their", "its", "and", "or", "but", "because", "if", "than", "every", "i'd",
     "i'll", "i'm", "we'll", "that's", "what's", "how's", "where's", "who's", "let's"]
)  # fmt: skip
"""Not "for", "on", "to" and their like: they can end a question ("what is that for")."""
PHRASES = (
    "let me see", "let me think", "what's it called", "what was it", "what is it called", "how do you say",
    "i mean", "remind me to", "remind me that", "note that", "down that", "remember that", "i want to", "i'd like to",
    "i would like to", "i would like you to", "i want you to", "i need to", "i need you to", "i was wondering if",
    "i was wondering", "i wanted to ask you", "i wanted to ask", "could you", "can you", "would you", "can you please",
    "could you please", "please", "tell me about", "tell me a story about", "a story about", "is there any",
    "do i have any", "set a timer for", "set the timer to", "set an alarm for", "wake me up at", "put", "add",
    "convert", "divide", "multiply", "spell the word", "how many", "how much", "which day is the",
    "how much is", "what is",
    "what about", "set a", "start a timer for", "a timer for", "a timer of", "divided by", "multiplied by", "plus",
    "minus", "make a note", "take a note",
)  # fmt: skip
WHOLE = frozenset(["please", "could you", "can you", "would you", "what is", "how much", "how many", "put", "add",
                   "convert", "divide", "multiply", "make a note", "take a note"])  # fmt: skip

ENGLISH = TalkWords(
    nods=NODS,
    hum_or_laugh=r"[mhn]+|(h[aeo]h?){2,}",
    hum="Mm.",
    hums_begin=frozenset(["and", "in", "the", "a", "an", "i'm", "my", "ma", "mama", "mom", "mum", "him", "thank"]),
    stopping=frozenset(["stop", "wait", "no", "hold", "hang", "enough", "quiet"]),
    cuts_in=CUTS_IN,
    stops=STOPS,
    agreeing=AGREEING,
    fillers=frozenset(["um", "uh", "er", "erm", "uhm", "hmm", "hm", "mm", "mmm", "ah", "eh"]),
    lone_fillers=frozenset(["mm", "hm", "hmm", "ah"]),
    openers=frozenset(["well", "so", "okay", "ok", "all", "right", "actually", "anyway"]),
    starts=frozenset(["well", "so", "actually", "anyway"]),
    set_apart=(", well", ", so"),
    bound=BOUND,
    phrases=PHRASES,
    whole=WHOLE,
    from_noise=frozenset(["You", "Thank you for watching.", "Thank you for watching!", "Thanks for watching!"]),
)

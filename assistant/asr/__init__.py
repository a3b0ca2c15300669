"""Where speech is, and what was said.

adaptation     a factor for each cepstrum, learnt from the speaker
detector       speech or not
gmm            how phones sound: the acoustic model's mixtures
level          how loud a talk is
local          a detector and a transcriber for each talk
mfcc           sound to cepstra
pocketsphinx   closed-vocabulary transcription
speaker        the average sound of a talk
"""

from importlib import import_module

from assistant.contracts import ASR

KINDS = {"pocketsphinx": "assistant.asr.pocketsphinx"}
"""A setting's value → the module whose `open_asr()` makes it. A new engine is one file and one row here."""


def open_asr(kind: str) -> ASR:
    """Ears of a kind, warm: one transcriber is loaded. Takes seconds; call it off the event loop."""
    found: ASR = import_module(KINDS[kind]).open_asr()
    return found

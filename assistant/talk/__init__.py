"""One talk: what was said and heard, who speaks, and the replies.

album          pictures that are kept with a talk
amends         nods are set aside, turns taken too early are reopened
candidates     replies begun in private before the turn is certain
completeness   how complete the words so far sound, by the language model
context        what the parts of a session share, and what all sessions share
conversation   the items of a talk, and what cutting and undoing does to them
ear            sound to frozen observations, on a thread
edits          what a front does to the conversation
expected       words that this talk makes likelier, for the transcriber
heard          samples played to words heard
hearing        feeds the ear, reads the words, reports both
idle           nobody speaks
inlet          a front's commands come in: sound to hearing, the rest straight to the session
interruption   what speech over a reply does to it, as a table
keeping        words and kept things as tables of the talk's journal
leaning        those words, renewed as the talk goes on
messages       what reaches a session's inbox, and what turn-taking is told
off_loop       a session's work on other threads
order          what is decided about a reply before it begins, and how it ended
outlet         where a reply puts what it makes; of a candidate nothing leaves it
overheard      is speech over a reply meant to stop it
own_level      how loud the user is, and who begins far below that or hardly stands out
pending        turns that are certain and not yet written down
pictures       what a front shows is looked at before the talk knows of it
playing        what the front's loudspeaker plays now, for the echo
preferences    settings change, a persona takes over
prompt         the conversation as a prompt
replies        replies begin, run, and end
reply          one reply from prompt to last sample
scribe         the words of the turn under way, beside the detector
session        the face to fronts, and which part answers which message
shown          pictures and frames: which of them count, and what of them is in the talk
sync           the models' state is brought in line with the talk
take_back      turns are taken back, and what tools did in them
talks          opens, resumes and parks talks
tool_effects   what tools wanted done to the talk, once the reply is out
tool_loop      the model's passes over one reply, tools run between them
turn_effects   what turn-taking decided is carried out
turn_end       has the user begun, has the user finished
turn_taking    who speaks, and what follows: one state, one pure step
turns          each turn's number and the time it takes
view           what a reply sees: persona, tools, prompt
"""

from typing import TYPE_CHECKING

from capsules.exec.lazy import lazy_names

if TYPE_CHECKING:
    from assistant.talk.context import Engines, Services
    from assistant.talk.session import Session

__all__ = ["Engines", "Services", "Session"]

__getattr__ = lazy_names(__name__, {"context": "Engines Services", "session": "Session"})

"""One talk: what was said and heard, who speaks, and the replies.

album          pictures that are stored with a talk
amends         nods are set aside, turns taken too early are reopened
archive        talks that are kept: listed, read, deleted
aside          a fork of the voice for words beside a reply
approvals      calls that wait for the person's word
candidates     replies begun in private before the turn is certain
completeness   how complete the words so far sound, by the language model
context        data shared by the parts of a session, and by all sessions
conversation   the items of a talk, and how cutting and undoing change them
cover          a short phrase while a reply is silent for long
ear            sound to frozen observations, on a thread
edits          a front's changes to the conversation
effects        what turn-taking may decide on, for others to carry out
expected       words that this talk makes likelier, for the transcriber
forgotten      a remembered sentence taken out of a talk
gate           waits for a name, was called, or is open: a pure step
heard          samples played to words heard
hearing        feeds the ear, reads the words, reports both
idle           nobody speaks
inlet          a front's commands come in: sound to hearing, the rest straight to the session
interruption   what speech over a reply does to it, as a table
keeping        words and tools' values as tables of the talk's journal
late_tools     tools of servers that were still starting when the talk began
leaning        those words, renewed as the talk goes on
lead           how far a reply's sound is ahead of its player
messages       messages to a session's inbox, and those that only turn-taking gets
off_loop       a session's work on other threads
order          the session's decisions about a reply before it begins, and how it ended
outlet         takes what a reply makes; nothing leaves the outlet of a candidate
overheard      decides whether speech over a reply is meant to stop it
own_calls      calls of the session's own tools: asked about, run, remembered
own_level      how loud the user is; finds voices far below that, or barely above the background
pending        turns that are certain and not yet written down
pictures       checks the pictures that a front sends before the talk sees them
playing        what the front's loudspeaker plays now, for the echo
preferences    settings change, a persona takes over
prompt         the conversation as a prompt
replies        replies begin, run, and end
reply          one reply from prompt to last sample
scribe         writes down the words of the turn under way, beside the detector
session        the face to fronts, and which part answers which message
shown          pictures and frames: which of them count, and which are in the talk
sync           brings the models' state in line with the talk
take_back      takes back turns, and what tools did in them
talks          opens, resumes and parks talks
tool_effects   changes that tools made to the talk, once the reply is out
tool_loop      the model's passes over one reply, tools run between them
turn_effects   carries out what turn-taking decided
turn_end       decides whether the user has begun, and whether the user has finished
turn_taking    who speaks, and what follows: one state, one pure step
turns          each turn's number and the time it takes
view           the view that a reply gets of the talk: persona, tools, prompt
waiting        sound before a name: three seconds, searched for it
wake_sign      tells the ear about the talk and the front about the gate
"""

from typing import TYPE_CHECKING

from capsules.exec.lazy import lazy_names

if TYPE_CHECKING:
    from assistant.talk.context import Engines, Services
    from assistant.talk.session import Session

__all__ = ["Engines", "Services", "Session"]

__getattr__ = lazy_names(__name__, {"context": "Engines Services", "session": "Session"})

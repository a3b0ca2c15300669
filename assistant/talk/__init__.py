"""One talk: what was said and heard, who speaks, and the replies.

context        what the parts of a session share, and what all sessions share
conversation   the items of a talk, and what cutting and undoing does to them
edits          items made, cut, taken back
heard          samples played to words heard
hearing        sound to speech events and words
idle           nobody speaks
interruption   what speech over a reply does to it, as a table
order          what is decided about a reply before it begins
prompt         the conversation as a prompt
replies        replies begin, run, and end
reply          one reply from prompt to last sample
session        the face to fronts, and which part answers which message
sync           the models' state is brought in line with the talk
talks          opens, resumes and parks talks
tool_loop      the model's passes over one reply, tools run between them
turn_end       has the user begun, has the user finished
turn_taking    the user speaks: over a reply, to the end of a turn
turns          each turn's number and the time it takes
view           what a reply sees: persona, tools, prompt
"""

from assistant.talk.context import Services
from assistant.talk.session import Session

__all__ = ["Services", "Session"]

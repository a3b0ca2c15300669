"""One talk while somebody is connected to it.

session    its face to fronts, and which part answers which message
shared     what its parts share, and what all sessions of a process share
floor      the user speaks: over a reply, to the end of a turn, and what was said
replies    replies begin, run, and end
view       what a reply sees: persona, tools, prompt
edits      items made, cut, taken back
settling   the models' state is brought in line with the talk
turns      each turn's number and the time it takes
idle       nobody speaks
"""

from assistant.session.session import Session
from assistant.session.shared import Surroundings

__all__ = ["Session", "Surroundings"]

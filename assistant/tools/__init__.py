"""Tools that a model can call.

answers    the wording of the built-in tools' answers
builtin    the tools that every talk has, including those that the small model was trained on
kept       what the tools store: timers, lists, notes
own        a person's own tools, from files in the home folder
registry   functions with type hints, declared, checked and run
"""

from assistant.tools.own import tool

__all__ = ["tool"]

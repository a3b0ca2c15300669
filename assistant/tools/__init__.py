"""What a model can call.

answers    the words of the built-in tools
builtin    the tools that every talk has, and those that the small model was trained on
kept       what they keep: timers, lists, notes
own        a person's own tools, from files in the home folder
registry   functions with type hints, declared, checked and run
"""

from assistant.tools.own import tool

__all__ = ["tool"]

"""What a model can call.

answers    the words of the built-in tools
builtin    the tools that every talk has
kept       what they keep: timers, lists, notes
registry   functions with type hints, declared, checked and run
"""

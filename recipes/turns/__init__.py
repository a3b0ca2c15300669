"""The sets by which turn ends and interruptions are fitted and judged: requests with pauses inside, nods, coughs.

texts    the words, separate for fitting and for judging
sounds   the speakers: human-like voices with silences spliced in, actors
processor_time   an event loop whose time is the processor's
"""

"""The sets by which turn ends and interruptions are fitted and judged: requests with pauses inside, nods, coughs.

texts    what is said, apart for fitting and for judging
sounds   who says it: human-like voices with silences spliced in, actors
"""

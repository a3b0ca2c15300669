"""Where the time went.

trace     one turn's timeline
metrics   counts and distributions over all of them
"""

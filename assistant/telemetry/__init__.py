"""Measures where the time went.

metrics   counts and distributions over all turns
trace     one turn's timeline
"""

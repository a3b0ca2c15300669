"""Texts, as they are written, as they are said, and cut into what can be spoken on its own.

hesitations   what is said only to gain time
names         capital letters for names
numbers       spoken numbers as digits
segment       a reply that is still being written, in pieces
unfinished    words that want more
written       a spoken transcript as it would be written
"""

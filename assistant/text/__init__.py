"""Texts, as they are written, as they are said, and cut into what can be spoken on its own.

english       English words that steer a talk
languages     which language's words steer a talk
names         capital letters for names
numbers       spoken numbers as digits
segment       a reply that is still being written, in pieces
small_model   what was heard or typed, as the small language model reads it
talk_words    the lists that a language has for that
unfinished    words that want more
written       a spoken transcript as it would be written
"""

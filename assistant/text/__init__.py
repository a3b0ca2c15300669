"""Texts, as they are written, as they are said, and cut into what can be spoken on its own.

called        a name at the beginning, and the words behind it
english       English words that steer a talk
hesitations   drops words that only gain time
languages     chooses the language whose words steer a talk
names         capital letters for names
numbers       spoken numbers as digits
segment       a reply that is still being written, in pieces
talk_words    the lists that a language has for that
unfinished    words that want more
written       a spoken transcript as it would be written
"""

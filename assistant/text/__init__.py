"""Texts as they are written, as they are spoken, and cut into pieces that can be spoken on their own.

english       English words that steer a talk
languages     chooses the language whose words steer a talk
names         capital letters for names
numbers       spoken numbers as digits
segment       cuts a reply that is still being written into pieces
small_model   rewrites heard or typed text for the small language model
talk_words    the lists that a language has for steering a talk
unfinished    recognises words that call for more
written       a spoken transcript as it would be written
"""

"""The local voice engine behind its contract.

alignment   characters that were said, and those that were written
local       pieces of text to sound; its memory cut to what was heard
"""

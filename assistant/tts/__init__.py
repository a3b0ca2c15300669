"""The local voice engine behind its contract.

alignment   characters that were said, and those that were written
frozen      a talk's session as a capsule, and back
local       pieces of text to sound; its memory cut to what was heard
voices      the voices of a checkpoint
"""

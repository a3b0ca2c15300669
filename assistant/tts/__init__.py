"""The local voice engine behind its contract.

frozen        a talk's session as a capsule, and back
local         pieces of text to sound; its memory cut to what was heard
recording     is a recording fit to be a voice?
voice_folder  where voices are kept: added, listed, removed
voices        those of a model that runs, with their capsules; designed where there is none
"""

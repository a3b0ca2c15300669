"""The local voice engine behind its contract.

frozen        a talk's session as a capsule, and back
guessed       a session before a guess, and the way back to it
local         the contract's face: pieces of text to sound, a memory that is cut to what was heard
recording     checks whether a recording is fit to be a voice
sessions      the owner of the engine's session, and the way back to lost parts of it
speaking      the work of each call of the contract on the engines' thread
voice_folder  the store of voices: added, listed, removed
voices        the voices of a running model, with their capsules; designed if there are none
"""

"""The local voice engine behind its contract.

alignment     characters that were said, and those that were written
frozen        a talk's session as a capsule, and back
guessed       a session before a guess, and the way back there
local         the contract's face: pieces of text to sound, a memory that is cut to what was heard
recording     is a recording fit to be a voice?
sessions      whose session is in the engine, and the way back to what was lost of it
speaking      what each call of the contract does on the engines' thread
voice_folder  where voices are kept: added, listed, removed
voices        those of a model that runs, with their capsules; designed where there is none
"""

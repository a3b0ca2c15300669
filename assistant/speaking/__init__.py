"""Text in, sound out.

segment   text → pieces that can be spoken on their own
heard     samples played → words heard
stage     pieces → sound, with bounded lead and a fade at a cut
voice     the local voice engine behind the Speaker contract
"""

"""Sound in, turns and words out.

stage        sound → speech events and transcripts, off the event loop
turn         has the user begun, has the user finished?
vad          speech or not · transcribe  what was said · numbers  spoken numbers → digits
"""

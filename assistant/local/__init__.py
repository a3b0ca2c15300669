"""This machine's own microphone, loudspeaker and camera, without a browser.

player    sound to be played, and how much of which item was heard
devices   the two streams
form      the rate and the channels that a device takes
echo      the one taken out of the other
camera    the newest picture
chime     the sound that answers a name
ringing   words on the loudspeaker while no front is connected
"""

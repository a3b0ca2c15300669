"""Where speech is, and what was said.

adaptation     a factor for each cepstrum, learnt from the speaker
detector       speech or not
gmm            how phones sound: the acoustic model's mixtures
level          how loud a talk is
local          a detector and a transcriber for each talk
mfcc           sound to cepstra
pocketsphinx   closed-vocabulary transcription
speaker        the average sound of a talk
"""

"""The ground floor: everything else builds on it, and it knows nothing of talks or models.

channel     a bounded, closable queue between two tasks
clock       the loop's seconds, and samples counted on a stream
days        days, months and feasts by the names that people say
errors      errors raised on purpose
extras      the command that adds a package that is missing
ids         ids for things made during a talk
memory      CPU memory: all of it, free, held by this process
pcm         formats, resampling
picture     a still picture: its limits, its pixels
sound       the type and the rates of sound inside
sound_file  sound files, read by their content
tongues     languages by their codes
units       units of measure by the names that people say
"""

"""What everything stands on, and what knows nothing of talks or models.

channel   a bounded, closable queue between two tasks
clock     the loop's seconds, and samples counted on a stream
days      days, months and feasts by the names that people say
errors    what is raised on purpose
ids       names for what is made during a talk
memory    how much of the processor's is free
pcm       formats, resampling, files
picture   a still picture: its limits, its pixels
sound     the type and the rates of sound inside
units     units of measure by the names that people say
"""

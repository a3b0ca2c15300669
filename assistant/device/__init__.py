"""The device that the models run on, and the one thread that issues their replays.

deployment     everything that the local engines of a process share
device_choice  chooses the device that each model runs on, a pure function
execution      the execution context: device, kernels, and checks for room
guess          work that may have to be taken back, talk by talk
lease          the owner of an engine's state, and where the states of other talks are
memory_plan    decides whether the models fit a GPU, before a byte of them is read
schedule       decides which talk makes the next step, a pure function
sleep          memory is let go while nobody needs the models
thread         work as steps, awaited from the event loop
"""

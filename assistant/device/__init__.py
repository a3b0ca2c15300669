"""The device that the models run on, and the one thread that issues their replays.

deployment     what the local engines of a process share
device_choice  which device each model runs on, a pure function
execution      the execution context: which device, which kernels, is there room
guess          work that may have to be taken back, and whose
lease          whose state an engine holds, and where that of the other talks is
memory_plan    whether the models fit a GPU, told before a byte of them is read
schedule       whose step is next, a pure function
sleep          memory let go while nobody needs the models
thread         work as steps, awaited from the event loop
"""

"""How much memory of the processor's is free for what is loaded next."""

from pathlib import Path

MEMINFO = Path("/proc/meminfo")


def available_bytes(told: Path = MEMINFO) -> int:
    """Free memory and what the system would give up for it; 0 where it does not tell (other systems than Linux)."""
    try:
        lines = told.read_text("ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, IndexError, StopIteration):
        return 0

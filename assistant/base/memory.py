"""How much CPU memory is free for whatever is loaded next."""

from pathlib import Path

MEMINFO = Path("/proc/meminfo")


def available_bytes(told: Path = MEMINFO) -> int:
    """Free memory plus what the system would reclaim for it; 0 if the system does not report it (other than Linux)."""
    try:
        lines = told.read_text("ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, IndexError, StopIteration):
        return 0

"""CPU memory: how much there is, how much is free, and how much this process holds."""

from pathlib import Path

MEMINFO, STATUS = Path("/proc/meminfo"), Path("/proc/self/status")


def available_bytes(told: Path = MEMINFO) -> int:
    """Free memory plus what the system would reclaim for it; 0 if the system does not report it (other than Linux)."""
    return _row(told, "MemAvailable:")


def machine_bytes(told: Path = MEMINFO) -> int:
    """All memory of the machine; 0 if the system does not report it."""
    return _row(told, "MemTotal:")


def resident_bytes(told: Path = STATUS) -> int:
    """Memory that this process holds now; 0 if the system does not report it."""
    return _row(told, "VmRSS:")


def _row(told: Path, name: str) -> int:
    try:
        lines = told.read_text("utf-8", errors="replace").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
    except (OSError, ValueError, IndexError, StopIteration):
        return 0

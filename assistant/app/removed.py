"""Settings and options that were removed, and what replaces each. Nothing here is understood any more: it is refused.

A setting stands under its name, which covers `config.toml`, ASSISTANT_NAME and --name; an option that never was a
setting stands under its flag.
"""

from __future__ import annotations

REMOVED: dict[str, str] = {
    "capsule_gpu_mb": "use capsule_mb, one budget that GPU, memory and disk share",
    "capsule_host_mb": "use capsule_mb, one budget that GPU, memory and disk share",
    "capsule_disk_mb": "use capsule_mb, one budget that GPU, memory and disk share",
    "capsule_days": "capsules are removed 30 days after their last use, or earlier by `assistant capsule rm`",
    "candidates": "use without instead (--without candidates)",
    "echo": "use without instead (--without echo)",
    "kernels": "use without instead (--without kernels)",
    "vision": "use without instead (--without vision)",
    "tts_dtype": "give dtype two values, the second for the voice (--dtype int4,float8)",
    "origins_allowed": "use allow instead (--allow URL)",
    "--no-vision": "use --without vision",
    "--tls-cert": "use --tls CERT KEY",
    "--tls-key": "use --tls CERT KEY",
    "--allow-host": "use --allow NAME",
    "--allow-origin": "use --allow URL",
    "--size": "name the size: `assistant pull ears-small`",
    "--word-times": "name them: `assistant pull ears-small-times`",
    "--no-ears": "name the models instead of the profile: `assistant pull Qwen/Qwen3.5-4B`",
    "--anyway": "choose another voice for whoever speaks with it, then remove it",
}


def advice_for(name: str) -> str | None:
    """The replacement of a setting, or of a flag with its dashes; None for one that never existed."""
    return REMOVED.get(name) or REMOVED.get(name.removeprefix("--").replace("-", "_"))

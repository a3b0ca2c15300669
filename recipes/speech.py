"""The small voice, step by step: the teacher's sound as codes, the training, and the export.

Run:  python -m recipes.speech encode --work .training/speech           (once the codec is trained)
      python -m recipes.speech voice --work .training/speech --steps 4000 --seconds 540   (again, until done)
      python -m recipes.speech export --work .training/speech --out tts_engine/tiny
      python -m recipes.speech restore --work .training/speech --out tts_engine/tiny     (to continue from those)
      python -m recipes.speech grow --work .training/speech      (codec and voice get the codebooks that they lack)
"""

import argparse
from pathlib import Path

import torch

from recipes.speech_data import encode_shards
from recipes.speech_export import export, restore
from recipes.speech_grow import grow
from recipes.speech_training import VoicePlan, train_voice


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["encode", "voice", "export", "restore", "grow"])
    parser.add_argument("--work", type=Path, default=Path(".training/speech"))
    parser.add_argument("--out", type=Path, default=Path("tts_engine/tiny"))
    parser.add_argument("--steps", type=int, default=VoicePlan.steps)
    parser.add_argument("--rate", type=float, default=VoicePlan.rate, help="AdamW's")
    parser.add_argument("--matrix-rate", type=float, default=VoicePlan.matrix_rate, help="Muon's")
    parser.add_argument("--half", action="store_true", help="the voice's matrix products in bfloat16")
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.what == "encode":
        encode_shards(args.work)
    elif args.what == "voice":
        plan = VoicePlan(steps=args.steps, rate=args.rate, matrix_rate=args.matrix_rate, half=args.half)
        train_voice(args.work, plan, args.seconds)
    elif args.what == "export":
        export(args.work, args.out)
    elif args.what == "grow":
        grow(args.work)
    else:
        restore(args.out, args.work)


if __name__ == "__main__":
    main()

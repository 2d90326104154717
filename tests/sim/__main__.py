"""Run the simulation: `python -m tests.sim FIRST [COUNT]`."""

from __future__ import annotations

import sys
import time
from collections import Counter

from tests.sim.simulation import simulate


def main() -> int:
    """Run the seeds that the command line names; 1 if one of them breaks an invariant."""
    first, count = [int(text) for text in [*sys.argv[1:], "0", "1"][:2]]
    broken = 0
    totals: Counter[str] = Counter()
    began = time.monotonic()
    for seed in range(first, first + max(count, 1)):
        found, counts = simulate(seed)
        totals += counts
        broken += bool(found)
        for sentence in found:
            sys.stdout.write(f"seed {seed}: {sentence}\n")
            sys.stdout.flush()
    took_s = time.monotonic() - began
    sys.stdout.write(f"{broken} of {max(count, 1)} seeds broke an invariant, in {took_s:.1f} s\n")
    sys.stdout.write(
        ", ".join(f"{name} {number}" for name, number in sorted(totals.items())) + "\n"
    )
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())

"""What virtual time costs over a plain loop over the same gradients, in one interleaved run.

    python benchmarks/simulate.py --speed [--learners 256] [--steps 300] [--rounds 3]

The loop takes each learner's gradients one after the other, without any exchange; the simulation
takes the same gradients with AD-PSGD between them, about one exchange a learner and step. The model
is a linear one by least squares on batches of 32 samples, in float32.
"""

import argparse
import time
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from orthotrace.distributed.strategies.pairs import PairAveraging
from orthotrace.distributed.virtual.costs import Steps, Wire
from orthotrace.distributed.virtual.scenario import Scenario
from orthotrace.distributed.virtual.world import simulate

BATCH = 32
RATE = 0.001


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--speed", action="store_true", required=True)
    parser.add_argument("--learners", type=int, default=256)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--parameters", type=int, nargs="+", default=[1000, 4000])
    parser.add_argument("--rounds", type=int, default=3)
    told = parser.parse_args()
    for parameters in told.parameters:
        ratios, events = [], 0
        for _ in range(told.rounds):
            loop = timed(partial(plain, told.learners, told.steps, parameters))[0]
            virtual, record = timed(partial(pairs, told.learners, told.steps, parameters))
            ratios.append(virtual / loop)
            events = len(record.swaps)
        print(
            f"{told.learners} learners x {told.steps} steps, {parameters} parameters, "
            f"{events} exchanges: virtual time over the plain loop x{median(ratios):.2f} "
            f"(median of {told.rounds}, processor time; the last {virtual:.1f} s over {loop:.1f} s)"
        )


def timed(work: Any) -> tuple[float, Any]:
    """Processor seconds, so that what else the machine does counts little; and the result."""
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def problem(parameters: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Samples, shape (16, BATCH, parameters), and targets, shape (16, BATCH)."""
    random = np.random.default_rng(0)
    samples = random.normal(size=(16, BATCH, parameters)).astype(np.float32)
    return samples, random.normal(size=(16, BATCH)).astype(np.float32)


def gradient(samples: Any, targets: Any, x: Any, rank: int, item: int, _: Any) -> Any:
    batch = samples[(rank + item) % 16]
    return (batch @ x - targets[(rank + item) % 16]) @ batch / np.float32(BATCH)


def plain(learners: int, steps: int, parameters: int) -> None:
    work = partial(gradient, *problem(parameters))
    for rank in range(learners):
        x = np.zeros(parameters, np.float32)
        for step in range(steps):
            x -= RATE * work(x, rank, step, None)


def pairs(learners: int, steps: int, parameters: int) -> Any:
    crossing = tuple(
        tuple(
            (rank + hop) % learners
            for hop in (1, 3, 5, 9, 17, -1, -3, -5, -9, -17)
            if (rank + hop) % learners != rank
        )
        for rank in range(learners)
    )
    scenario = Scenario(
        strategy=PairAveraging(crossing, frozenset(range(0, learners, 2))),
        starts=[np.zeros(parameters, np.float32)] * learners,
        gradient=partial(gradient, *problem(parameters)),
        rate=RATE,
        compute=Steps(0.05, jitter=0.1),
        link=Wire(0.001, 1e9),
        steps=steps,
    )
    return simulate(scenario)


if __name__ == "__main__":
    main()

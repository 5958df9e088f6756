"""Where every random draw of a learner comes from."""

from zlib import crc32

import numpy as np


def generator(seed: int, rank: int, purpose: str) -> np.random.Generator:
    """A random generator for one learner and one purpose; `seed` and `rank` are 0 or more.

    >>> generator(1, 2, "matching").integers(9, size=3).tolist()
    [3, 5, 3]
    """
    return np.random.default_rng([seed, rank, crc32(purpose.encode())])

"""The sets of reports that channels of local privacy prefer, written down anew from the papers."""

import numpy as np
from scipy import linalg

from skdp.mechanisms import KaryChannel, WindowChannel


def reports_of(channel, x):
    """The set of reports of a value."""
    if isinstance(channel, KaryChannel):
        return [x]
    if isinstance(channel, WindowChannel):
        return list(range(x, x + channel.window))
    block, row = divmod(x, channel.block - 1)
    signs = linalg.hadamard(channel.block)[row + 1]
    return [block * channel.block + int(j) for j in np.flatnonzero(signs == 1)]

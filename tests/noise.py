"""Seed the noise of every test, so that no test fails by chance.

Where the library asks the operating system for random bits (`skdp.mechanisms._base`), a test run hands it bits that
depend on the name of the test and on SKDP_NOISE_SEED, also in place of OpenSSL's. SKDP_NOISE_SEED=fresh leaves the
operating system's and OpenSSL's, as does the mark ``system_noise`` for a test that is about them. Child processes
have the operating system's in any case.

With seeds, a run of the whole suite fails by chance with a probability of at most 1e-9: that of the tests with this
mark. What the noise of child processes is, decides nothing in any test.
"""

import hashlib
import os
import random
import ssl
import types

import numpy as np
import pytest

from skdp.mechanisms import _base

#: The variable of the environment with the seed; any text.
VARIABLE = "SKDP_NOISE_SEED"


class Plugin:
    """Seed the generators before each test, and before each fixture that several tests share."""

    def __init__(self, config):
        self.seed = os.environ.get(VARIABLE, "0")
        if self.seed == "fresh":
            return
        self.process = os.getpid()
        # A module, since the searches for leaks leave modules alone.
        seam = types.ModuleType("os")
        seam.urandom = self.urandom
        _base.os = seam
        _base.ssl = None
        self.start("collection")

    def start(self, name):
        """Start anew, with a seed that depends on a name."""
        words = np.frombuffer(hashlib.sha256(f"{self.seed} {name}".encode()).digest(), dtype=np.uint32)
        self.generator = np.random.Generator(np.random.Philox(np.random.SeedSequence(words.tolist())))
        # scikit-learn draws from these.
        np.random.seed(words[0])  # noqa: NPY002
        random.seed(int(words[1]))

    def urandom(self, n):
        if self.generator is None or os.getpid() != self.process:
            return os.urandom(n)
        return self.generator.bytes(n)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        if self.seed != "fresh":
            self.start(item.nodeid)
            system = item.get_closest_marker("system_noise")
            _base.ssl = ssl if system else None
            if system:
                self.generator = None
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        if self.seed == "fresh" or fixturedef.scope == "function":
            return (yield)
        kept = self.generator, np.random.get_state(), random.getstate()  # noqa: NPY002
        self.start(f"{fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param_index', 0)}")
        try:
            return (yield)
        finally:
            self.generator = kept[0]
            np.random.set_state(kept[1])  # noqa: NPY002
            random.setstate(kept[2])

"""The Gaussian mechanism's curve in decimal arithmetic, from its definition."""

import decimal
from decimal import Decimal

DIGITS = 110


def _pi():
    """Machin's formula."""

    def arctan_of_inverse(n):
        power = total = Decimal(1) / n
        k = 1
        while abs(power) > Decimal(10) ** -(DIGITS + 10):
            k, power = k + 2, -power / (n * n)
            total += power / k
        return total

    with decimal.localcontext(decimal.Context(prec=DIGITS + 20)):
        return 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))


PI = _pi()


def by_series(x):
    """1 - Phi(x) from the power series of Phi(x) - 1/2, whose terms are of one sign; loses exp(-x^2/2)."""
    term = total = x
    n = 1
    while abs(term) > abs(total) * Decimal(10) ** -DIGITS:
        n += 2
        term = term * x * x / n
        total += term
    return Decimal("0.5") - total * (-x * x / 2).exp() / (2 * PI).sqrt()


def by_fraction(x, depth=700):
    """1 - Phi(x) from Laplace's continued fraction, for x well above 0."""
    denominator = x
    for n in range(depth, 0, -1):
        denominator = x + n / denominator
    return (-x * x / 2).exp() / (2 * PI).sqrt() / denominator


def normal_tail(x):
    """1 - Phi(x), to about 80 significant digits."""
    x = Decimal(x)
    with decimal.localcontext(decimal.Context(prec=DIGITS, Emin=decimal.MIN_EMIN)):
        if x < -6:
            return 1 - by_fraction(-x)
        return by_fraction(x) if x > 6 else by_series(x)


def gaussian_delta(epsilon, mu):
    """Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu), for the very numbers that are passed."""
    epsilon, mu = Decimal(epsilon), Decimal(mu)
    with decimal.localcontext(decimal.Context(prec=DIGITS, Emin=decimal.MIN_EMIN)):
        x = epsilon / mu - mu / 2
        return normal_tail(x) - epsilon.exp() * normal_tail(x + mu)

"""Prime numbers: the sizes of tables that n-grams are hashed into."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=16)
def primes_from(base: int, count: int) -> tuple[int, ...]:
    """The first ``count`` primes from ``base`` on."""
    found: list[int] = []
    number = base
    while len(found) < count:
        if is_prime(number):
            found.append(number)
        number += 1
    return tuple(found)


def is_prime(number: int) -> bool:
    """The test of Miller and Rabin, exact below 3.4e14 with these bases (Jaeschke, 1993)."""
    bases = (2, 3, 5, 7, 11, 13, 17)
    if number < 2 or any(number % base == 0 for base in bases):
        return number in bases
    odd = number - 1
    while odd % 2 == 0:
        odd //= 2
    return all(passes(number, odd, base) for base in bases)


def passes(number: int, odd: int, base: int) -> bool:
    """Whether one base speaks for a prime."""
    power = pow(base, odd, number)
    while odd != number - 1 and power not in (1, number - 1):
        power, odd = power * power % number, odd * 2
    return power == number - 1 or odd % 2 == 1

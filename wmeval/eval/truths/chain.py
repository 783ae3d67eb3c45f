"""A row of equal balls, the first of which strikes the others: what the last one gets.

Newton's restitution at every impact, one pair at a time, equal small gaps. With little loss each
ball strikes once and the last leaves with ((1 + e) / 2)^(n - 1) of the speed. With more, those
behind catch up and push again; below a restitution of about 0.25 for five balls they strike ever
more often until all go on together with 1 / n (inelastic collapse: Bernu and Mazighi, J. Phys. A
23, 1990).
"""

from __future__ import annotations

TOGETHER = 1e-9
"""Of the first ball's speed: balls that differ by less go on together."""


def chain_transfer(restitution: float, balls: int) -> float:
    """Speed of the last of n equal balls over the first's, when no two approach any longer.

    Args:
        restitution: e of every impact, 0 to 1.
        balls: n, 2 or more.
    """
    place, speed = [float(k) for k in range(balls)], [1.0] + [0.0] * (balls - 1)
    while True:
        wait, first = min(
            (
                (place[k + 1] - place[k]) / (speed[k] - speed[k + 1])
                if speed[k] - speed[k + 1] > TOGETHER
                else float("inf"),
                k,
            )
            for k in range(balls - 1)
        )
        if wait == float("inf"):
            return speed[-1]
        place = [x + v * wait for x, v in zip(place, speed, strict=True)]
        place[first + 1] = place[first]
        mean = (speed[first] + speed[first + 1]) / 2
        half = restitution * (speed[first] - speed[first + 1]) / 2
        speed[first], speed[first + 1] = mean - half, mean + half


def chain_restitution(transfer: float, balls: int) -> float:
    """Restitution by which the last ball gets ``transfer`` in one impact of each pair.

    e = 2 eta^(1 / (n - 1)) - 1, the inverse of `chain_transfer` where no ball strikes twice.
    """
    return float(2 * transfer ** (1 / (balls - 1)) - 1)

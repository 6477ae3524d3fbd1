"""How many workers keep the 95th percentile of waiting under a target.

Work that arrives at random at rate L and takes S on average keeps a = L·S workers busy. With c
workers the chance to wait at all is Erlang's C(c, a), and to wait longer than T

    P(W > T) = C(c, a) · exp(-(c - a) · T / (S · (1 + v) / 2))

where v is the squared coefficient of variation of run times. For exponential run times (v = 1) that
is exact (M/M/c; Erlang 1917; Kleinrock, "Queueing Systems" I, 1975, section 3.5). For others the
factor (1 + v) / 2 stretches the wait as in Lee and Longton's approximation of M/G/c ("Queueing
processes associated with airline passenger check-in", 1959; Allen, "Probability, Statistics and
Queueing Theory", 1990, section 5.3). C follows from Erlang's B, by its recursion
B(0) = 1, B(k) = a·B(k-1) / (k + a·B(k-1)), as C = B / (1 - (a / c) · (1 - B)).

The answer is the smallest c > a with P(W > T) <= 5 %.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

LATE = 0.05
"""The share that may wait longer than the target."""

MOST = 100_000
"""Offered loads beyond this many workers get no search: spare capacity is noise there."""


def workers_needed(
    arrivals_per_s: Column, run_s: Column, variation: Column, target_s: float
) -> Column:
    """INT, at least 1; null where run times are unknown. `variation` is v of the module's text."""
    load = arrivals_per_s * run_s
    scale = F.lit(target_s) / (run_s * (1 + variation) / 2)

    def step(found: Column, count: Column) -> Column:
        """`found` has B of one worker fewer, and the answer if there is one."""
        weight = load * found["blocked"]
        blocked = weight / (count + weight)
        waits = blocked / (1 - load / count * (1 - blocked))
        late = waits * F.exp(-(count - load) * scale)
        enough = (count > load) & (late <= LATE)
        return F.struct(
            blocked.alias("blocked"),
            F.coalesce(found["workers"], F.when(enough, count)).alias("workers"),
        )

    # Square-root staffing: a + x·sqrt(a) workers make everybody wait less than 5 % of the time
    # from x = 1.65 on (Halfin and Whitt 1981), so the search ends well before 10.
    most = F.ceil(load + 10 * F.sqrt(load) + 10).cast("int")
    start = F.struct(F.lit(1.0).alias("blocked"), F.lit(None).cast("int").alias("workers"))
    searched = F.aggregate(F.sequence(F.lit(1), most), start, step)["workers"]
    return (
        F.when(load <= 0, F.lit(1))
        .when(load > MOST, F.ceil(load).cast("int"))
        .when(load.isNotNull(), searched)
    )

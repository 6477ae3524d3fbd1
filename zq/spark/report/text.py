"""Figures as people read them."""

NOTHING = "\N{EN DASH}"
UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))


def duration(millis: float | None) -> str:
    """`830 ms`, `4.2 s`, `12 min`; a dash for None."""
    if millis is None:
        return NOTHING
    for size, unit in UNITS:
        if millis >= size:
            return f"{_short(millis / size)} {unit}"
    return "0 ms" if millis < 0.5 else "1 ms"


def count(number: float) -> str:
    """`0.25`, `950`, `12,400`, `1.3 M`."""
    if number >= 1_000_000:
        return f"{_short(number / 1_000_000)} M"
    if number == round(number) or number >= 10:
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 1 else f"{number:.2f}"


def percent(share: float | None) -> str:
    """`0.4 %`, `0.02 %` where it is that small but not nothing; a dash for None."""
    if share is None:
        return NOTHING
    if 0 < share < 0.001:
        return f"{share * 100:.2f} %" if share >= 0.0001 else "< 0.01 %"
    return f"{share * 100:.1f} %" if share < 0.0995 else f"{share * 100:.0f} %"


def _short(number: float) -> str:
    return f"{number:.0f}" if number >= 9.95 or number == round(number) else f"{number:.1f}"

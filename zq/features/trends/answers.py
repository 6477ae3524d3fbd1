"""What the verbs about what happened over time do."""

from msgspec import UNSET, UnsetType

from zq.answers import Asked, VerbAnswers
from zq.features.trends import verbs
from zq.features.trends.model import TimeMark, TrendRange, TypeRange, TypeSort
from zq.features.trends.service import Marks, Runs, Trends, TypeFigures, TypeTrends, runs_of
from zq.features.trends.verbs import (
    PercentilesDocument,
    TrendsDocument,
    TypeDocument,
    TypePointDocument,
    TypesDocument,
    decode_mark,
    percentiles_document,
    point_document,
    wait_and_run,
)
from zq.model.lifecycle import Status
from zq.model.names import check_name
from zq.wire.query import choice

ANSWERS = VerbAnswers()


@ANSWERS.to(verbs.MARK)
async def mark(asked: Asked) -> TimeMark:
    """Give this moment a name, such as that of a release that was just deployed: 201.

    `text` has up to 200 characters. Charts show it. The latest 100 marks are kept.
    """
    return await asked.services[Marks].add(decode_mark(asked.body, asked.codec))


@ANSWERS.to(verbs.HISTORY)
async def history(asked: Asked) -> TrendsDocument:
    """The trend of a `queue`, or of all together, over a `range`.

    The range is `5m`, `1h` (unless another one is given), `24h`, `7d` or `90d`. Each of the
    `points` counts jobs by what became of them. `wait` and `run` have percentiles of the time
    until a delivery, and from there to the end, in all and in each point that has any. Of the
    last point's time `open_ms` have passed. `marks` are moments with a name. `drained_ms` says
    when nothing waits any more if jobs come and go as in the last five minutes. It is missing
    if that is never. Minutes are kept for two days, hours for 90 days. Steps of five seconds,
    the points of `5m`, are kept in memory and begin with the server's start. A key that is
    limited to some queues must name one.
    """
    values = asked.query
    trends = asked.services[Trends]
    queue, range = values.get("queue"), choice(values, "range", TrendRange, TrendRange.HOUR)
    if queue is not None:
        check_name("queue", queue)
    series = await trends.series(queue, range, asked.reach)
    wait, run = wait_and_run(series.sum)
    flow, counts = trends.flow(queue), await asked.services.queues.counts()
    waiting = sum(
        n
        for (each, status), n in counts.items()
        if status is Status.READY and queue in (None, each)
    )
    drained = flow.drained_ms(waiting)
    return TrendsDocument(
        queue=UNSET if queue is None else queue,
        range=range,
        step_ms=series.step,
        open_ms=series.open_ms,
        points=list(map(point_document, series.points)),
        wait=wait,
        run=run,
        waiting=waiting,
        arrivals_per_second=round(flow.arrivals, 3),
        ends_per_second=round(flow.ends, 3),
        drained_ms=UNSET if drained is None else round(drained),
        marks=await asked.services[Marks].since(series.points[0].at),
    )


@ANSWERS.to(verbs.TYPES)
async def types(asked: Asked) -> TypesDocument:
    """How jobs of each type ended, and how long they ran, of a `queue` or of all.

    The `range` is `1h` (unless another one is given), `24h` or `7d`. Its last five minutes,
    hour or day of the clock (UTC) are still open. The `sort` is by `slowest` (the 95 % of the
    runs), `failing` (the share of failed attempts) or `rate`. At most 200 types are shown. With
    `type` it is about that one, and has its `points`. A type has a row for each queue that it
    has jobs in. A thousand of these are told apart, and the others are counted together as type
    `*` in queue `*`. Percentiles of runs are off by a quarter at most. Jobs that were delivered
    before the server's start, or with 100,000 others in flight, are not counted.
    """
    values = asked.query
    trends = asked.services[TypeTrends]
    queue, type, reach = values.get("queue"), values.get("type"), asked.reach
    range = choice(values, "range", TypeRange, TypeRange.HOUR)
    sort = choice(values, "sort", TypeSort, TypeSort.SLOWEST)
    if queue is not None:
        check_name("queue", queue)
    look = await trends.read(queue, type, range, sort, reach)
    document = TypesDocument(
        range=range,
        queue=UNSET if queue is None else queue,
        known=look.known,
        types=[_type_document(each, look.seconds) for each in look.first],
    )
    if type is not None:
        series = await trends.series(queue, type, range, reach)
        document.step_ms, document.open_ms = series.step, series.open_ms
        document.points = [
            TypePointDocument(at=at, done=trend.done, failed=trend.failed, run=_run(runs_of(trend)))
            for at, trend in series.points
        ]
    return document


def _type_document(look: TypeFigures, seconds: float) -> TypeDocument:
    return TypeDocument(
        queue=look.queue,
        type=look.type,
        rate=round(look.ended / seconds, 3),
        done=look.trend.done,
        failed=look.trend.failed,
        failed_share=round(look.failed_share, 4),
        run=_run(look.run),
    )


def _run(runs: Runs | None) -> PercentilesDocument | UnsetType:
    return UNSET if runs is None else percentiles_document(runs)

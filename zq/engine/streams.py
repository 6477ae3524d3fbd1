"""Who takes jobs at present, what they hold, and which of them the next tick claims for.

All of this is memory that dies with the connections. What it says of jobs changes only after a
commit, from the tick's result.
"""

import itertools
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from zq.engine.heads import Heads
from zq.engine.players import Claimer, Group, Player, Stream, Wish, give_back, unclaimed
from zq.model.commands import Claim, Command, Enqueue, Fail, Return, Succeed, TickResult
from zq.model.job import Job
from zq.model.leasing import Terms
from zq.model.outcome import Completion
from zq.model.reach import EVERYWHERE, Reach

MOST_CLAIMED = 2000
"""Jobs that one claim takes: bounds a tick and what a stream's window can cost at once."""

MOST_PLAYERS = 256
"""Players that one claim deals to. The others of a group come next, in turn."""

MOST_LEFT = 1024
"""Closed streams whose workers are remembered."""


class Plan:
    """The claims of one tick and the groups that they are for."""

    def __init__(self) -> None:
        self.claims: list[Claim] = []
        self.groups: list[Group] = []
        self.hasty: list[Claimer] = []
        """Those of the claimers who take part and wait for nothing."""


class Streams:
    """All open streams, and claims that wait.

    `limit` bounds the jobs in flight over all of them, `claimed` ones that have been in flight
    before included; 0 is no bound.
    """

    def __init__(self, limit: int, claimed: int) -> None:
        self._limit = limit or 2**62
        self._claimed = claimed
        self._claimers: dict[int, Claimer] = {}
        self._hasty: list[Claimer] = []
        self._numbers = itertools.count(1)
        self._streams: dict[int, Stream] = {}
        self._groups: dict[tuple[str, ...] | Reach, Group] = {}
        self._by_queue: dict[str, set[Group]] = {}
        self._ranging: set[Group] = set()
        self._hungry: dict[Group, None] = {}
        self._holders: dict[int, Stream] = {}
        self._heads = Heads()
        self._when_empty: Callable[[], object] | None = None
        self.workers: dict[int, str] = {}
        """What workers call themselves, by the numbers of their streams: open ones and, as jobs
        that they held may still be settled, those closed last."""
        self._left: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._streams)

    @property
    def is_hungry(self) -> bool:
        """Whether a tick without commands has something to claim, or somebody to answer."""
        return bool(self._hasty) or (bool(self._hungry) and self._room > 0)

    @property
    def _room(self) -> int:
        """How many more jobs may be in flight."""
        return self._limit - len(self._holders) - self._claimed

    @property
    def claiming(self) -> int:
        """How many claims are under way."""
        return len(self._claimers)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left of anybody who has taken jobs, nor any job in flight."""
        players = self._streams or self._claimers or self._hasty
        groups = self._groups or self._by_queue or self._ranging or self._hungry
        return not (players or groups or self._holders or self._claimed)

    def all(self) -> list[Stream]:
        """The open streams, in the order of opening."""
        return list(self._streams.values())

    def open(
        self,
        queues: Iterable[str],
        reach: Reach,
        wish: Wish,
        since: int,
        unsent: Callable[[], int],
    ) -> Stream:
        """Register a stream of some queues (none named: of all within reach), open `since`."""
        group = self._join(tuple(sorted(set(queues))), reach)
        wish = wish._replace(window=wish.window or self._limit)
        stream = Stream(next(self._numbers), group, wish, since, unsent)
        self._streams[stream.number] = stream
        if wish.worker:
            self.workers[stream.number] = wish.worker
        self.credit_changed(stream)
        return stream

    def ask(self, queue: str, most: int, terms: Terms, *, hasty: bool) -> Claimer:
        """Register one who claims from a queue, once; a hasty one is answered by the next tick.

        Whoever asks has to `dismiss` the claimer at last.
        """
        group = self._join((queue,), EVERYWHERE)
        claimer = Claimer(next(self._numbers), group, most, terms)
        self._claimers[claimer.number] = claimer
        if hasty:
            self._hasty.append(claimer)
        self.credit_changed(claimer)
        return claimer

    def dismiss(self, claimer: Claimer) -> None:
        """Forget a claimer. What is being claimed for it just now goes back."""
        claimer.give_up()
        del self._claimers[claimer.number]
        self._leave(claimer)

    def dismiss_all(self) -> None:
        """Let no claim wait any longer."""
        for claimer in self._claimers.values():
            claimer.give_up()

    def when_empty(self, callback: Callable[[], object]) -> None:
        """Call back whenever no stream holds a job any more, and at once if that is so."""
        self._when_empty = callback
        if not self._holders:
            callback()

    def close(self, stream: Stream) -> Return | None:
        """Forget a stream; what has to go back of it."""
        rest = give_back(stream) if stream.held else None
        stream.ended = True
        self._streams.pop(stream.number, None)
        if stream.number in self.workers:
            self._left.append(stream.number)
            if len(self._left) > MOST_LEFT:
                self.workers.pop(self._left.popleft(), None)
        self._leave(stream)
        return rest

    def _leave(self, player: Player) -> None:
        group = player.group
        group.waiting.pop(player, None)
        group.members -= 1
        if not group.members:
            self._groups.pop(group.queues or group.reach, None)
            self._ranging.discard(group)
            self._hungry.pop(group, None)
            for queue in group.queues or ():
                self._by_queue[queue].discard(group)
                if not self._by_queue[queue]:
                    del self._by_queue[queue]

    def credit_changed(self, player: Player) -> None:
        """Say that a player may be able to take more than before."""
        if self._player(player.number) is not None:
            player.group.waiting.setdefault(player)
            self._consider(player.group)

    def touch(self, queues: Iterable[str]) -> None:
        """Say that queues may have ready jobs that they had not before."""
        for queue in queues:
            ranging = [group for group in self._ranging if group.reach.covers(queue)]
            for group in (*self._by_queue.get(queue, ()), *ranging):
                group.dry = False
                self._consider(group)

    def plan(self, commands: Sequence[Command]) -> Plan:
        """The claims of a tick that applies these commands first.

        Jobs that the commands settle free their slots within the same tick: memory mirrors the
        committed leases, so it knows what the settlements will find. Only of those with a bounded
        reach it does not, for it does not know queues: their slots are free a tick later.
        """
        if not self._groups and not self._hasty:
            return Plan()
        freed = self._freed(commands) if self._holders else _NOTHING_FREED
        for stream in freed:
            self.credit_changed(stream)
        enqueues = [command for command in commands if isinstance(command, Enqueue)]
        self.touch({job.queue for command in enqueues for job in command.jobs})
        self.touch(self._heads.settled(commands))
        plan = Plan()
        budget = self._room + freed.total()
        for group in list(self._hungry):
            if budget <= 0:
                break
            credits, terms = self._credits(group, freed, min(budget, MOST_CLAIMED))
            # Whoever was asked goes to the end of the line, so that no group starves another.
            del self._hungry[group]
            if not credits:
                continue
            self._hungry[group] = None
            plan.groups.append(group)
            claim = Claim(group.queues, credits, group.reach, terms or None)
            plan.claims.append(claim)
            budget -= claim.limit
        if self._hasty:
            self._settle_hasty(plan, budget)
        return plan

    def _settle_hasty(self, plan: Plan, budget: int) -> None:
        """Answer those who do not wait, as far as the plan holds nothing for them."""
        asked = {number for claim in plan.claims for number, _ in claim.credits}
        hasty, self._hasty = self._hasty, []
        for claimer in hasty:
            if claimer.number in asked:
                plan.hasty.append(claimer)
            elif claimer.group.dry or budget <= 0:
                claimer.give_up()
            elif not claimer.is_done:
                self._hasty.append(claimer)

    def postpone(self, plan: Plan) -> None:
        """A planned tick has come to nothing: whoever waits for nothing waits for the next one."""
        self._hasty += plan.hasty

    def apply(self, result: TickResult, plan: Plan) -> list[Return]:
        """Learn from a committed tick; what has to go back, for its holder is gone or hangs."""
        lapsed = self._notify(result)
        holders = {holder for holder, _ in result.ended}
        for holder in holders:
            stream = self._streams.get(holder)
            if stream is not None:
                self.credit_changed(stream)
        if 0 in holders:
            self._claimed -= sum(holder == 0 for holder, _ in result.ended)
        for _, key in result.ended:
            self._holders.pop(key, _NOBODY).held.pop(key, None)
        self._heads.learn(result)
        # Claims come last in a tick: those that were made have seen whatever woke a queue.
        self.touch(result.woken)
        orphans = [give_back(stream) for stream in lapsed if stream.held]
        for group, claim, jobs in zip(plan.groups, plan.claims, result.claimed, strict=False):
            if len(jobs) < claim.limit:
                group.dry = True
                self._hungry.pop(group, None)
            orphans += self._deliver(jobs)
        self.touch(result.left)
        if len(result.claimed) < len(plan.claims):
            self.postpone(plan)
        else:
            for claimer in plan.hasty:
                claimer.give_up()
        if not self._holders and self._when_empty is not None:
            self._when_empty()
        return orphans

    def _notify(self, result: TickResult) -> list[Stream]:
        """Tell streams what they have lost; those that end with it."""
        for key in result.revoked:
            self._holders.get(key, _NOBODY).tell("cancel", key)
        lapsed: dict[Stream, None] = {}
        for key in result.lapsed:
            stream = self._holders.get(key, _NOBODY)
            if stream is not _NOBODY:
                stream.lapse(key)
                lapsed[stream] = None
        return list(lapsed)

    def _deliver(self, jobs: Sequence[Job]) -> Iterator[Return]:
        """Hand jobs to their players; yields what was claimed for players that are gone."""
        hands: defaultdict[int | None, list[Job]] = defaultdict(list)
        for job in jobs:
            hands[job.holder].append(job)
        for holder, hand in hands.items():
            assert holder is not None, "a claimed job has a holder"
            player = self._player(holder)
            gone = player is None or player.is_done
            if hand[0].claimant is None:
                stream = player if isinstance(player, Stream) and not gone else _NOBODY
                self._holders.update([(job.key, stream) for job in hand])
                rest = Return(holder, [job.key for job in hand])
            else:
                self._claimed += len(hand)
                rest = unclaimed({job.key: job.deliveries for job in hand})
            if player is None or gone:
                yield rest
                continue
            player.deliver(hand)
            waiting = player.group.waiting
            if player in waiting:
                del waiting[player]
                waiting[player] = None

    def _player(self, number: int) -> Player | None:
        return self._streams.get(number) or self._claimers.get(number)

    def _join(self, names: tuple[str, ...], reach: Reach) -> Group:
        group = self._groups.get(names or reach) or self._new_group(names, reach)
        group.members += 1
        return group

    def _new_group(self, names: tuple[str, ...], reach: Reach) -> Group:
        group = self._groups[names or reach] = Group(names or None, reach)
        for queue in names:
            self._by_queue.setdefault(queue, set()).add(group)
        if not names:
            self._ranging.add(group)
        return group

    def _consider(self, group: Group) -> None:
        if group.waiting and not group.dry:
            self._hungry.setdefault(group)

    def _freed(self, commands: Sequence[Command]) -> Counter[Player]:
        freed: Counter[Player] = Counter()
        holders = self._holders
        for command in commands:
            if not isinstance(command, Succeed | Fail) or command.reach is not EVERYWHERE:
                continue
            if isinstance(command, Succeed):
                stale = self._stale(command.said)
                freed.update(
                    holders[key] for key in command.keys if key in holders and key not in stale
                )
            elif self._holds(command.key, command.failure.lease):
                freed[holders[command.key]] += 1
        return freed

    def _holds(self, key: int, lease: int | None) -> bool:
        """Whether a stream holds a job, by the delivery that is named."""
        stream = self._holders.get(key)
        return stream is not None and lease in (None, stream.held.get(key))

    def _stale(self, said: Mapping[int, Completion] | None) -> set[int]:
        """The jobs of which another delivery is held than the one that is acknowledged."""
        return {
            key
            for key, told in (said or {}).items()
            if key in self._holders and not self._holds(key, told.lease)
        }

    def _credits(
        self, group: Group, freed: Counter[Player], most: int
    ) -> tuple[list[tuple[int, int]], dict[int, Terms]]:
        """Whom a claim deals how many jobs at most, and on what terms."""
        credits: list[tuple[int, int]] = []
        terms: dict[int, Terms] = {}
        without: list[Player] = []
        for player in group.waiting:
            credit = min(player.credit(freed[player]), most)
            if credit <= 0:
                without.append(player)
                continue
            credits.append((player.number, credit))
            if player.terms is not None:
                terms[player.number] = player.terms
            most -= credit
            if most <= 0 or len(credits) == MOST_PLAYERS:
                break
        # They come back when they have credit again: nothing here visits all streams every tick.
        for player in without:
            del group.waiting[player]
        return credits, terms


_NOTHING_FREED: Counter[Player] = Counter()

_NOBODY = Stream(0, Group(()), Wish(), 0, lambda: 0)
"""Stands for a stream that closed while a tick claimed for it, until its jobs are back."""

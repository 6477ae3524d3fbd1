"""Sets of queues by names and beginnings."""

from random import Random

import pytest

from zq.model.queue_patterns import QueuePatterns


@pytest.mark.parametrize("seed", range(20))
def test_a_set_covers_what_one_of_its_patterns_names(seed: int) -> None:
    draw = Random(seed)

    def word() -> str:
        return "".join(draw.choice("ab/\U0010ffff") for _ in range(draw.randint(0, 4)))

    def some() -> list[str]:
        return [word() + draw.choice(("", "*")) for _ in range(draw.randint(0, 8))]

    patterns = some()
    found, other = QueuePatterns.of(patterns), QueuePatterns.of(some())
    for queue in {word() for _ in range(200)}:
        wanted = any(
            queue.startswith(each[:-1]) if each.endswith("*") else queue == each
            for each in patterns
        )
        assert found.covers(queue) == wanted, (patterns, queue)
        if other.covers(queue) != wanted:
            assert queue.startswith(found.differing(other))

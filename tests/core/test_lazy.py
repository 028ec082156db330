"""What is worked out on first use."""

from __future__ import annotations

import threading

from wellworn.core.lazy import cached_property
from wellworn.ingest.statement import Statement


class Slow:
    def __init__(self) -> None:
        self.begun, self.go_on, self.times = threading.Event(), threading.Event(), 0

    @cached_property
    def value(self) -> int:
        """Its value."""
        self.times += 1
        self.begun.set()
        self.go_on.wait()
        return 7


def test_a_value_is_worked_out_once_and_has_its_doc() -> None:
    one = Slow()
    one.go_on.set()
    assert (one.value, one.value, one.times) == (7, 7, 1)
    assert Slow.value.__doc__ == "Its value."


def test_an_object_does_not_wait_for_another_nor_would_a_fork_of_it() -> None:
    """A child has only the thread that forked: a lock that another one held stays held."""
    one, other, found = Slow(), Slow(), list[int]()
    other.go_on.set()
    held = threading.Thread(target=lambda: one.value, daemon=True)
    held.start()
    one.begun.wait()
    free = threading.Thread(target=lambda: found.append(other.value), daemon=True)
    free.start()
    free.join(60)
    one.go_on.set()
    held.join()
    assert found == [7]


def test_statements_are_read_without_a_lock() -> None:
    assert type(Statement.__dict__["english"]) is cached_property

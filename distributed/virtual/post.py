"""What goes one way or through a whole group, in virtual time."""

from ..effects import AllReduce, LearnerLost, Letter, Receive, Send, Vector
from .clock import Clock, Task
from .costs import LinkCost, ring_all_reduce
from .learners import Learner


class Post:
    """Carries letters and all-reduces; tells those who wait that a learner is lost."""

    def __init__(self, clock: Clock, learners: list[Learner], link: LinkCost) -> None:
        self._clock = clock
        self._learners = learners
        self._link = link
        self._boxes: list[dict[int, list[Letter]]] = [{} for _ in learners]
        self._receivers: list[dict[tuple[int | None, int], Task]] = [{} for _ in learners]
        self._sums: dict[tuple[int, ...], dict[int, tuple[Task, Vector]]] = {}
        self._gone: dict[int, int] = {}
        """Learners that are known to be lost, and whose loss it was in the end."""

    def send(self, task: Task, effect: Send) -> None:
        """Put a letter on its way; the sender goes on at once."""
        seconds = self._link(task.rank, effect.to, effect.vector.nbytes)
        letter = Letter(task.rank, effect.vector, effect.note)
        self._clock.after(seconds, self._deliver, effect.to, effect.tag, letter)
        self._clock.soon(task, None)

    def _deliver(self, to: int, tag: int, letter: Letter) -> None:
        if not self._learners[to].here:
            return
        for sender in (letter.sender, None):
            task = self._receivers[to].pop((sender, tag), None)
            if task is not None:
                self._clock.soon(task, letter)
                return
        self._boxes[to].setdefault(tag, []).append(letter)

    def receive(self, task: Task, effect: Receive) -> None:
        """Give out a letter that is there, or wait for it."""
        letters = self._boxes[task.rank].get(effect.tag, [])
        for place, letter in enumerate(letters):
            if effect.sender in (None, letter.sender):
                letters.pop(place)
                if not letters:
                    del self._boxes[task.rank][effect.tag]
                self._clock.soon(task, letter)
                return
        if effect.sender in self._gone:
            self._clock.soon(task, LearnerLost(self._gone[effect.sender]))
            return
        self._receivers[task.rank][effect.sender, effect.tag] = task

    def all_reduce(self, task: Task, effect: AllReduce) -> None:
        """Wait for the group; the last one in starts the sum."""
        for rank in effect.group:
            if rank in self._gone:
                self._clock.soon(task, LearnerLost(self._gone[rank]))
                return
        inside = self._sums.setdefault(effect.group, {})
        if task.rank not in effect.group or task.rank in inside:
            raise ValueError(f"learner {task.rank} takes part once in a sum of its own group")
        inside[task.rank] = (task, effect.vector)
        if len(inside) == len(effect.group):
            seconds = ring_all_reduce(self._link, effect.group, effect.vector.nbytes)
            self._clock.after(seconds, self._summed, effect.group)

    def _summed(self, group: tuple[int, ...]) -> None:
        inside = self._sums.pop(group, None)
        if inside is None:
            return  # a member was lost on the way
        mean = inside[min(group)][1].copy()
        for rank in sorted(group)[1:]:
            mean += inside[rank][1]
        mean /= len(group)
        for rank in group:
            self._clock.soon(inside[rank][0], mean)

    def lost(self, rank: int, root: int) -> None:
        """All who wait for `rank` learn that it is lost, and that `root` was the first to be."""
        if self._gone.setdefault(rank, root) != root:
            return
        for receivers in self._receivers:
            for key in [key for key in receivers if key[0] == rank]:
                self._clock.soon(receivers.pop(key), LearnerLost(root))
        for group in [group for group in self._sums if rank in group]:
            for task, _ in self._sums.pop(group).values():
                self._clock.soon(task, LearnerLost(root))

    def leave(self, rank: int) -> None:
        """Forget what `rank` was waiting for and what was meant for it."""
        self._boxes[rank].clear()
        self._receivers[rank].clear()

    def back(self, rank: int) -> None:
        """The learner is there again."""
        self._gone.pop(rank, None)

    def stuck(self) -> tuple[Task, int] | None:
        """Somebody who waits, and for whom; asked when nothing can happen any more."""
        for receivers in self._receivers:
            for (sender, tag), task in receivers.items():
                if sender is not None:
                    del receivers[sender, tag]
                    return task, sender
        for group, inside in self._sums.items():
            missing = [rank for rank in group if rank not in inside]
            if missing and inside:
                rank = next(iter(inside))
                return inside.pop(rank)[0], missing[0]
        return None

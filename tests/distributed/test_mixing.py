"""Nothing that a learner learnt is lost in mixing, and nothing that is wrong gets in."""

import copy
import sys
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from orthotrace.distributed.errors import Refused
from orthotrace.distributed.layout import Entry, Kind, Layout, Vector, layout_of, weights_only
from orthotrace.distributed.mixing import Mixture, is_finite, total
from torch import nn

MIXED = Layout(
    (
        Entry("weight", (3,), "float64", Kind.WEIGHTS),
        Entry("variance", (2,), "float64", Kind.STATISTICS),
        Entry("steps", (), "int64", Kind.COUNTERS),
    )
)


def exchange(one: Mixture, other: Mixture) -> None:
    mine, theirs = one.snapshot(), other.snapshot()
    one.mix(mine, theirs)
    other.mix(theirs, mine)


def drawn(seed: int, layout: Layout = MIXED) -> Vector:
    """Weights of any sign, statistics and counters not negative."""
    vector = np.random.default_rng(seed).normal(size=layout.size) * 10
    vector[layout.segment(Kind.WEIGHTS).stop :] **= 2
    vector[layout.segment(Kind.COUNTERS)] //= 1
    return vector.astype(layout.dtype)


@given(
    st.lists(st.sampled_from(["step 0", "step 1", "meet", "mix 0", "mix 1"]), max_size=30),
    st.integers(0, 2**31),
)
def test_the_sum_moves_by_the_steps_alone_in_any_order(events: list[str], seed: int) -> None:
    random = np.random.default_rng(seed)
    models = [drawn(seed), drawn(seed + 1)]
    learners = [Mixture(model, MIXED) for model in models]
    wanted = total(learners)
    sent: list[Vector] = []
    waiting: set[int] = set()
    for event in [*events, "mix 0", "mix 1"]:
        rank = int(event[-1]) if event != "meet" else 0
        if event == "meet" and not waiting:
            sent, waiting = [learner.snapshot() for learner in learners], {0, 1}
        elif event.startswith("mix") and rank in waiting:
            learners[rank].mix(sent[rank], sent[1 - rank])
            waiting.remove(rank)
        elif event.startswith("step"):
            step = random.normal(size=3)
            wanted = wanted + step
            models[rank] = models[rank].copy()
            models[rank][:3] += step
            models[rank] = learners[rank].commit(models[rank])
    assert np.allclose(total(learners), wanted, rtol=0, atol=1e-11)


def test_a_step_between_sending_and_mixing_is_kept_whole() -> None:
    layout = weights_only(1, "float64")
    learner = Mixture(np.array([2.0]), layout)
    mine, theirs, step = learner.snapshot(), np.array([6.0]), 1.0
    learner.commit(mine + step)
    learner.mix(mine, theirs)
    assert learner.look() == (mine + theirs) / 2 + step
    assert (mine + step + theirs) / 2 == (mine + theirs) / 2 + step / 2  # what averaging would do


@given(st.integers(0, 2**32 - 1))
def test_what_one_adds_the_other_takes_to_the_bit(seed: int) -> None:
    bits = np.random.default_rng(seed).integers(0, 2**32, (2, 9), dtype=np.uint32)
    mine, theirs = np.where(np.isfinite(bits.view("f4")), bits.view("f4"), np.float32(1)) / 4
    one, other = (Mixture(np.zeros(9, "f4"), weights_only(9)) for _ in range(2))
    one.snapshot(), other.snapshot()
    one.mix(mine, theirs)
    other.mix(theirs, mine)
    assert np.array_equal(one.look(), -other.look())


@given(st.lists(st.sampled_from(["step", "mix"]), max_size=12), st.integers(0, 2**31))
def test_statistics_keep_their_sign_and_stay_within_what_was_seen(
    events: list[str], seed: int
) -> None:
    random = np.random.default_rng(seed)
    model, place = drawn(seed), MIXED.segment(Kind.STATISTICS)
    learner, highest = Mixture(model, MIXED), model[place].max()
    for event in [*events, "step"]:
        fresh = drawn(int(random.integers(2**31)))
        fresh[place] *= random.choice([1e-12, 1, 1e12])
        highest = max(highest, fresh[place].max())
        if event == "mix":
            learner.mix(learner.snapshot(), fresh)
        else:
            told = learner.commit(fresh)[place]
            assert (told >= 0).all() and (told <= highest).all()
        assert (learner.look()[place] >= 0).all()


def test_statistics_are_half_of_each_at_the_time_of_mixing() -> None:
    layout = Layout((Entry("variance", (1,), "float32", Kind.STATISTICS),))
    learner = Mixture(np.array([10], "f4"), layout)
    learner.mix(learner.snapshot(), np.array([0], "f4"))
    assert learner.look() == 5
    assert learner.commit(np.array([1], "f4")) == 0.5  # a delta would make it 5 + (1 - 10) = -4
    learner.mix(learner.snapshot(), np.array([2.5], "f4"))
    learner.mix(learner.snapshot(), np.array([3.5], "f4"))
    assert learner.look() == 2.5 and learner.commit(np.array([0.5], "f4")) == 2.5


def test_counters_are_the_highest_seen() -> None:
    layout = Layout((Entry("steps", (2,), "int64", Kind.COUNTERS),))
    learner = Mixture(np.array([3, 5], "f4"), layout)
    learner.mix(learner.snapshot(), np.array([4, 4], "f4"))
    assert learner.look().tolist() == [4, 5]
    assert learner.commit(np.array([3, 6], "f4")).tolist() == [4, 6]
    assert learner.look().tolist() == [4, 6]


class Small(nn.Module):
    """BatchNorm, a frozen layer and a weight under two names."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.frozen = nn.Linear(3, 4, dtype=dtype).requires_grad_(False)
        self.norm = nn.BatchNorm1d(4, dtype=dtype)
        self.inside, self.outside = (nn.Linear(4, 4, dtype=dtype) for _ in range(2))
        self.outside.weight = self.inside.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        told: torch.Tensor = self.outside(self.inside(self.norm(self.frozen(x))).tanh())
        return told


OPTIMIZERS: dict[str, Callable[[nn.Module], torch.optim.Optimizer]] = {
    "sgd": lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda m: torch.optim.Adam(m.parameters(), lr=0.01),
    "adamw": lambda m: torch.optim.AdamW(m.parameters(), lr=0.01, weight_decay=0.1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_lone_learner_is_plain_torch_to_the_bit(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    plain = Small(dtype)
    ours = copy.deepcopy(plain)
    layout = layout_of(ours)
    learner = Mixture(layout.read(ours), layout)
    batches = torch.randn(50, 8, 3, dtype=dtype)
    for module in (plain, ours):
        optimizer = OPTIMIZERS[name](module)
        for batch in batches:
            module(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            if module is ours:
                layout.write(learner.commit(layout.read(ours)), ours)
    assert layout.read(plain).tobytes() == layout.read(ours).tobytes()
    assert learner.look().tobytes() == layout.read(ours).tobytes()


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Python changes threads between any two statements, so that a missing lock is found."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_two_threads_at_once_lose_nothing() -> None:
    layout, steps = weights_only(2, "float64"), 1500
    learners = [Mixture(np.array([-5.0, 7.0]), layout), Mixture(np.array([3.0, 0.0]), layout)]
    wanted = total(learners) + steps * 0.25
    done = threading.Event()

    def train() -> None:
        for _ in range(steps):
            learners[0].commit(learners[0].restart() + 0.25)
        done.set()

    trainer = threading.Thread(target=train, daemon=True)
    trainer.start()
    while not done.is_set():
        exchange(*learners)
    trainer.join()
    assert learners[0].version == learners[1].version > 50
    assert np.allclose(total(learners), wanted, rtol=0, atol=1e-8)


def test_a_narrow_model_does_not_round_what_is_mixed() -> None:
    """M is float32 where the module has bfloat16: small differences still add up."""
    layout = weights_only(50, "bfloat16")
    random = np.random.default_rng(0)
    learners = [Mixture(random.normal(size=50).astype("f4"), layout) for _ in range(2)]
    wanted = total(learners)
    models = [learner.restart() for learner in learners]
    for _ in range(20):
        exchange(*learners)
        models = [learner.commit(model) for learner, model in zip(learners, models, strict=True)]
        models = [learner.commit(model) for learner, model in zip(learners, models, strict=True)]
    assert np.allclose(total(learners), wanted, rtol=0, atol=1e-5)
    held = models[0].copy()
    layout.hold(held)
    assert np.array_equal(held, models[0]) and not np.array_equal(held, learners[0].look())


def spoilt(value: float, place: int) -> Vector:
    vector = drawn(7)
    vector[place] = value
    return vector


@pytest.mark.parametrize(
    ("theirs", "schema", "reason"),
    [
        (spoilt(np.nan, 0), None, "nonfinite"),
        (spoilt(np.inf, 2), None, "nonfinite"),
        (spoilt(np.nan, 3), None, "nonfinite"),
        (spoilt(-np.inf, 5), None, "nonfinite"),
        (np.ones(7), None, "length"),
        (np.ones(1), None, "length"),
        (np.ones((6, 1)), None, "length"),
        (np.ones(6, "f4"), None, "dtype"),
        (np.ones(6), "another", "schema"),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(
    theirs: Vector, schema: str | None, reason: str
) -> None:
    learner = Mixture(drawn(1), MIXED)
    learner.mix(learner.snapshot(), drawn(2), MIXED.schema())
    before = learner.state_dict()
    mine = learner.snapshot()
    with pytest.raises(Refused) as refused:
        learner.mix(mine, theirs, schema)
    assert refused.value.reason == reason
    after = learner.state_dict()  # the exchange is over
    # mypy wants a literal for a TypedDict's key.
    assert all(np.array_equal(before[key], after[key]) for key in before)  # type: ignore[literal-required]


@pytest.mark.parametrize("place", range(6))
def test_a_model_that_became_nan_stays_at_home(place: int) -> None:
    learner = Mixture(drawn(1), MIXED)
    learner.mix(learner.snapshot(), drawn(2))
    before, wanted = learner.state_dict(), learner.look()
    with pytest.raises(Refused, match="NaN or infinite in training"):
        learner.commit(spoilt(np.nan, place))
    # As above.
    assert all(np.array_equal(before[k], learner.state_dict()[k]) for k in before)  # type: ignore[literal-required]
    assert np.array_equal(learner.restart(), wanted)


def test_large_numbers_are_no_mistake_and_infinite_ones_are() -> None:
    assert is_finite(np.full(9, 3e38, "f4"))
    assert not is_finite(np.array([np.inf, -np.inf, 1], "f4"))


def test_one_exchange_at_a_time() -> None:
    learner = Mixture(drawn(1), MIXED)
    with pytest.raises(ValueError, match="begins with a snapshot"):
        learner.mix(drawn(1), drawn(2))
    mine = learner.snapshot()
    for another in (learner.snapshot, learner.state_dict):
        with pytest.raises(ValueError, match="in flight"):
            another()
    learner.abandon()
    learner.mix(learner.snapshot(out=mine), drawn(2))
    with pytest.raises(ValueError, match="begins with"):
        learner.abandon()


def test_staleness_counts_what_the_module_has_not_seen() -> None:
    learner = Mixture(drawn(1), MIXED)
    for _ in range(3):
        learner.mix(learner.snapshot(), drawn(2))
    assert (learner.version, learner.staleness) == (3, 3)
    learner.restart()
    assert (learner.version, learner.staleness) == (3, 0)


def test_resumed_it_goes_on_to_the_same_bits() -> None:
    learner, resumed = Mixture(drawn(1), MIXED), Mixture(drawn(9), MIXED)
    learner.commit(drawn(3))
    learner.mix(learner.snapshot(), drawn(2))
    resumed.load_state_dict(learner.state_dict())
    told = []
    for each in (learner, resumed):
        each.mix(each.snapshot(), drawn(4))
        told += [each.look(), each.commit(drawn(5)).copy(), each.look()]
    assert all(np.array_equal(*pair) for pair in zip(told[:3], told[3:], strict=True))

"""Whatever goes over the wire, the pair's sum stays, and nonsense is refused by a sentence."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from orthotrace.distributed.codec import HEAD, Bfloat16, Blocks8, Codec, Plain
from orthotrace.distributed.errors import DistributedError, Refused
from orthotrace.distributed.layout import Entry, Kind, Layout, Vector, weights_only
from orthotrace.distributed.mixing import Mixture, total
from orthotrace.distributed.sparse import TopK


def mixed(weights: int, dtype: str = "float32") -> Layout:
    return Layout(
        (
            Entry("weight", (weights,), dtype, Kind.WEIGHTS),
            Entry("variance", (3,), dtype, Kind.STATISTICS),
            Entry("steps", (1,), "int64", Kind.COUNTERS),
        )
    )


CODECS: dict[str, Callable[[Layout], Codec]] = {
    "plain": Plain,
    "bfloat16": Bfloat16,
    "blocks8": Blocks8,
    "topk": lambda layout: TopK(layout, 0.05),
}
EVERY = pytest.mark.parametrize("name", CODECS)


def drawn(layout: Layout, seed: int) -> Vector:
    return np.abs(np.random.default_rng(seed).normal(size=layout.size)).astype(layout.dtype)


def exchange(
    learners: list[Mixture], links: list[Codec], exact: bool = False
) -> tuple[Vector, Vector]:
    """One exchange over a wire; `exact` mixes with what was meant and not with what was said."""
    vectors = [learner.snapshot() for learner in learners]
    messages = [link.encode(vector) for link, vector in zip(links, vectors, strict=True)]
    told = [link.decode(messages[1 - end].payload.tobytes()) for end, link in enumerate(links)]
    for end, learner in enumerate(learners):
        learner.mix(vectors[end] if exact else messages[end].own, told[end])
    return told[0], told[1]


@EVERY
def test_the_sum_of_two_stays_over_a_thousand_exchanges(name: str) -> None:
    layout = weights_only(300)
    drifts = []
    for exact in (False, True):
        learners = [Mixture(drawn(layout, seed) - 0.5, layout) for seed in (1, 2)]
        links = [CODECS[name](layout) for _ in learners]
        exchange(learners, links)
        learners[0].commit(learners[0].restart() + drawn(layout, 3))
        before = total(learners)
        for _ in range(1000):
            exchange(learners, links, exact)
        drifts.append(np.abs(total(learners) - before).max())
    assert drifts[0] < 2e-6  # of numbers up to 4
    assert name == "plain" or drifts[1] > 1e-3


@EVERY
def test_two_learners_come_together_as_far_as_the_codec_tells_them_apart(name: str) -> None:
    layout = mixed(300)
    learners = [Mixture(drawn(layout, seed), layout) for seed in (1, 2)]
    links = [CODECS[name](layout) for _ in learners]
    for _ in range(100):
        exchange(learners, links)
    one, other = (learner.look() for learner in learners)
    finest = {"plain": 1e-6, "topk": 1e-6, "bfloat16": 2**-7, "blocks8": 1 / 127}[name]
    weights = layout.segment(Kind.WEIGHTS)
    assert np.abs(one - other)[weights].max() <= finest * np.abs(one).max()
    assert np.array_equal(one[weights.stop :], other[weights.stop :])


@EVERY
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weights", [1, 255, 256, 257])
def test_both_ends_read_the_same_and_bytes_are_as_told(name: str, dtype: str, weights: int) -> None:
    layout = mixed(weights, dtype)
    sender, reader = CODECS[name](layout), CODECS[name](layout)
    item, kept = layout.dtype.itemsize, max(1, round(weights * 0.05))
    packed = {
        "plain": weights * item,
        "bfloat16": weights * 2,
        "blocks8": -(-weights // 256) * item + weights,
        "topk": weights * item,
    }[name]
    for exchange_ in range(3):
        vector = drawn(layout, exchange_)
        assert sender.nbytes == reader.nbytes == HEAD.size + packed + 4 * item
        message = sender.encode(vector)
        assert message.nbytes == message.payload.nbytes == HEAD.size + packed + 4 * item
        told = reader.decode(message.payload)
        assert told.tobytes() == message.own.tobytes()
        assert np.array_equal(told[weights:], vector[weights:])
        sender.decode(reader.encode(drawn(layout, 10 + exchange_)).payload)
        packed = kept * (4 + item) if name == "topk" else packed


def of_any_size(seed: int) -> Vector:
    """Numbers of all magnitudes from 1e-38 to 1e30, and zeros."""
    random = np.random.default_rng(seed)
    vector = random.normal(size=random.integers(1, 600)) * 10.0 ** random.uniform(-38, 30)
    vector *= 10.0 ** random.uniform(-3, 0, vector.size) * random.choice([0, 1, 1], vector.size)
    return vector.astype(np.float32)


def through(codec: type[Codec], vector: Vector) -> Vector:
    return codec(weights_only(vector.size)).encode(vector).own


SEEDS = given(st.integers(0, 2**31))


@SEEDS
def test_plain_has_no_error(seed: int) -> None:
    vector = of_any_size(seed)
    assert vector.tobytes() == through(Plain, vector).tobytes()


@SEEDS
def test_bfloat16_is_off_by_a_256th_at_most(seed: int) -> None:
    vector = of_any_size(seed)
    error = np.abs(through(Bfloat16, vector) - vector)
    assert (error <= np.abs(vector) * np.float32(2**-8) + 1e-40).all()


def test_bfloat16_rounds_ties_to_even() -> None:
    ties = np.array([1 + 2**-8, 1 + 3 * 2**-8], np.float32)
    assert through(Bfloat16, ties).tolist() == [1, 1 + 2**-6]


@SEEDS
def test_blocks_are_off_by_a_254th_of_their_largest(seed: int) -> None:
    vector = of_any_size(seed)
    told = through(Blocks8, vector)
    for start in range(0, vector.size, 256):
        largest = np.abs(vector[start : start + 256]).max()
        error = np.abs(told[start : start + 256] - vector[start : start + 256])
        assert (error <= largest / 254 * (1 + 1e-5) + 1e-43).all()


def test_a_block_has_its_own_scale() -> None:
    vector = np.repeat(np.array([1e-3, 1e3], np.float32), [256, 4])
    assert np.allclose(through(Blocks8, vector), vector, rtol=1e-6)


@EVERY
def test_what_is_no_message_is_refused(name: str) -> None:
    layout = mixed(20)
    link = CODECS[name](layout)
    good = CODECS[name](layout).encode(drawn(layout, 0)).payload.tobytes()
    another = Plain if name != "plain" else Bfloat16
    wrong = {
        "less than the 16": b"nonsense",
        f"{len(good) - 1} bytes, and {len(good)}": good[:-1],
        f"{len(good) + 1} bytes, and {len(good)}": good + b"!",
        "begins with": b"HT" + good[2:],
        "codec": another(layout).encode(drawn(layout, 0)).payload.tobytes(),
        "with 25 numbers": CODECS[name](mixed(21)).encode(drawn(mixed(21), 0)).payload.tobytes(),
        "of 8 bytes": CODECS[name](mixed(20, "float64"))
        .encode(drawn(mixed(20, "float64"), 0))
        .payload.tobytes(),
    }
    for sentence, payload in wrong.items():
        with pytest.raises(Refused, match=sentence) as refused:
            link.decode(payload)
        assert refused.value.reason == "message"
    assert link.decode(good).shape == (24,)
    with pytest.raises(ValueError, match="where the layout has"):
        link.encode(np.zeros(3, np.float32))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_scale_that_is_not_finite_is_refused(value: float) -> None:
    codec = Blocks8(weights_only(4))
    payload = codec.encode(np.ones(4, np.float32)).payload
    payload[16:20] = np.array([value], np.float32).view(np.uint8)
    with pytest.raises(Refused, match="scale that is NaN or infinite"):
        codec.decode(payload)


def met(share: float = 0.1, size: int = 40) -> tuple[list[Mixture], list[TopK]]:
    """Two learners and the ends of their link after a first exchange."""
    layout = weights_only(size)
    learners = [Mixture(drawn(layout, seed), layout) for seed in (1, 2)]
    links = [TopK(layout, share) for _ in learners]
    exchange(learners, list(links))
    return learners, links


def test_references_stay_the_same_bits_at_both_ends() -> None:
    learners, links = met()
    for step in range(50):
        for rank, learner in enumerate(learners):
            learner.commit(learner.restart() + drawn(learner.layout, 2 * step + rank))
        exchange(learners, list(links))
        one, other = (link.state_dict() for link in links)
        assert one["reference"] is not None and other["reference"] is not None
        assert one["reference"].tobytes() == other["reference"].tobytes()
        assert one["exchange"] == other["exchange"] == step + 2


def test_the_largest_changes_are_what_is_sent() -> None:
    _, links = met()
    reference = links[0].state_dict()["reference"]
    assert reference is not None
    vector = reference.copy()
    vector[[3, 8, 21, 30]] += np.array([1, -2, 3, -4], np.float32)
    vector[5] += 0.5
    own = links[0].encode(vector).own
    assert np.flatnonzero(own != reference).tolist() == [3, 8, 21, 30]
    assert np.allclose(own[[3, 8, 21, 30]], vector[[3, 8, 21, 30]])


def test_a_ring_over_sparse_links_comes_together() -> None:
    """Four links, each with its own reference: what one link moves is news to the next."""
    layout = weights_only(100, "float64")
    learners = [Mixture(drawn(layout, seed), layout) for seed in range(4)]
    links = {rank: [TopK(layout, 0.1), TopK(layout, 0.1)] for rank in range(4)}
    before = total(learners)
    for event in np.random.default_rng(0).integers(4, size=2000):
        exchange([learners[event], learners[(event + 1) % 4]], list(links[int(event)]))
    assert np.std([learner.look() for learner in learners], axis=0).max() < 1e-6
    assert np.allclose(total(learners), before, rtol=0, atol=1e-10)


@pytest.mark.parametrize("change", [np.nan, np.inf])
def test_what_is_no_number_does_not_enter_a_reference(change: float) -> None:
    learners, links = met()
    payload = links[0].encode(learners[0].look()).payload
    payload[-4:] = np.array([change], np.float32).view(np.uint8)
    with pytest.raises(Refused) as refused:
        links[1].decode(payload)
    assert refused.value.reason == "nonfinite"
    reference = links[1].state_dict()["reference"]
    assert reference is not None and np.isfinite(reference).all()


@pytest.mark.parametrize("indices", [[0, 1, 2, 40], [0, 1, 1, 2], [3, 2, 1, 0]])
def test_indices_that_lead_nowhere_are_refused(indices: list[int]) -> None:
    learners, links = met()
    payload = links[0].encode(learners[0].look()).payload
    payload[16:32] = np.array(indices, np.uint32).view(np.uint8)
    with pytest.raises(Refused, match="do not rise below 40"):
        links[1].decode(payload)


def test_a_link_that_failed_at_one_end_is_noticed_and_begins_anew() -> None:
    learners, links = met()
    lost = links[0].encode(learners[0].look())
    with pytest.raises(ValueError, match="reset a link that fails"):
        links[0].encode(learners[0].look())
    with pytest.raises(ValueError, match="half done"):
        links[0].state_dict()
    links[0].reset()
    with pytest.raises(Refused, match="exchange 0 of the link, and 1 comes next"):
        links[1].decode(links[0].encode(learners[0].look()).payload)
    for link in links:
        link.reset()
    with pytest.raises(Refused, match="exchange 1 of the link, and 0 comes next"):
        links[1].decode(lost.payload)
    exchange(learners, list(links))
    assert np.allclose(learners[0].look(), learners[1].look(), atol=1e-6)


def test_a_resumed_link_goes_on_to_the_same_bits() -> None:
    learners, links = met()
    resumed = TopK(links[0].layout, 0.1)
    resumed.load_state_dict(links[0].state_dict())
    vector = learners[0].look() * 2
    assert np.array_equal(resumed.encode(vector).payload, links[0].encode(vector).payload)


@pytest.mark.parametrize("share", [0, -0.1, 1.1])
def test_a_share_is_a_share(share: float) -> None:
    with pytest.raises(DistributedError, match="must be in"):
        TopK(weights_only(4), share)

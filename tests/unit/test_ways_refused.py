"""Ways are read from their texts; what makes no sense is refused in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bertology.errors import CapabilityError, ParameterError, UnknownNameError
from bertology.train.starts import STARTS
from bertology.train.tuning import tune
from bertology.train.ways import WAYS, compatible, read_way, read_ways
from made_tunings import encoder
from made_ways import by


def test_the_text_of_a_way_is_read_back() -> None:
    for name in WAYS:
        way = WAYS.get(name)()
        assert read_way(way.text) == way
        assert way.summary
        assert way.name == name
    assert read_way("layer-rates: decay = 0.5").text == "layer_rates:decay=0.5"
    given = read_ways(["layer_rates", "adapters:size=8", "masked_lm"])
    assert [w.name for w in given] == ["masked_lm", "adapters", "layer_rates"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("adapter", "adapters"),
        ("adapters:width=3", "size=16"),
        ("adapters:size", "size=16"),
        ("adapters:size=0", "at least 1"),
        ("adapters:size=many", "a whole number"),
        ("mixout:share=1", "at most 0.99"),
        ("mixout:share=nan", "at least 0"),
        ("substitution:by=luck", "'random', 'mask'"),
        ("adapters:size=3,size=4", "give 'size' once"),
        ("bias_only:size=3", "without options"),
        ("features", "--start frozen-features"),
        ("early-stopping", "--early-stopping 2"),
    ],
)
def test_texts_that_say_nothing_sensible_are_refused(text: str, message: str) -> None:
    with pytest.raises((ParameterError, UnknownNameError), match=message):
        read_way(text)


@pytest.mark.parametrize(
    ("texts", "start", "message"),
    [
        (["adapters", "bias_only"], "pretrained", "which weights of the model are trained"),
        (["mixout", "bias_only"], "pretrained", "their pre-trained values already"),
        (["top_again", "adapters"], "pretrained", "must be trained"),
        (["layer_mix", "layer_choice"], "pretrained", "what the head reads"),
        (["mixout", "mixout:share=0.1"], "pretrained", "name 'mixout' once"),
        (["adapters"], "frozen", "nothing is trained"),
        (["layer_rates"], "frozen-features", "the head alone"),
        (["mixout"], "random", "no pre-trained weights"),
    ],
)
def test_nonsense_is_refused_in_words(texts: list[str], start: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        read_ways(texts, start=start)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["frozen_bottom:layers=2", "top_again:layers=2"], "below 2: .* must be trained"),
        (["frozen_bottom:layers=1", "top_again:layers=3"], "below 1: .* must be trained"),
        (["frozen_bottom:layers=2", "top_again:layers=1", "layer_rates"], None),
        (["frozen_bottom:layers=0", "top_again:layers=3"], None),
        (["layer_choice:which=1,how=mean", "top_again:layers=2"], "layer 3 too: .* from 2 on"),
        (["layer_choice:which=1+2", "top_again:layers=1"], "layer 3 too: .* from 3 on"),
        (["layer_choice:which=1+3", "top_again:layers=3"], None),
        (["layer_choice:which=2,how=mean", "frozen_bottom:layers=2"], "below 2, the highest"),
        (["layer_choice:which=1", "frozen_bottom:layers=2"], r"below 1, .*frozen-features"),
        (["layer_choice:which=1+2", "frozen_bottom:layers=1"], None),
    ],
)
def test_layers_that_are_frozen_new_and_read_must_go_together(
    texts: list[str], message: str | None
) -> None:
    """What is new must be trained and read, and some of what is read must be trained."""
    if message is None:
        assert tune(by(*texts))[1].trained > 0
        return
    with pytest.raises(ParameterError, match=message):
        tune(by(*texts))
    # Before a stage, which may take hours; this one would refuse the model itself.
    with pytest.raises(ParameterError, match=message):
        tune(by("masked_lm", *texts))


def test_what_does_not_fit_the_model_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"below 3.*frozen-features"):
        tune(by("frozen_bottom:layers=3"))
    with pytest.raises(ParameterError, match="at most 3"):
        tune(by("top_again:layers=4"))
    for which in ("0", "4", "2-9", "two", "3-2"):
        with pytest.raises(ParameterError, match="from 1 to 3"):
            tune(by(f"layer_choice:which={which}"))
    shared = replace(by("layer_rates"), encoder=encoder("albert"))
    with pytest.raises(CapabilityError, match="share their weights"):
        tune(shared)
    for kind in ("albert", "modernbert"):
        with pytest.raises(CapabilityError, match="cannot have parts added"):
            tune(replace(by("adapters"), encoder=encoder(kind)))
    with pytest.raises(ParameterError, match="nothing is trained"):
        replace(by("layer_mix"), start=STARTS["frozen"])
    compatible((), start="frozen")

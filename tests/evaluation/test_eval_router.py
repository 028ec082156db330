"""The evaluation of routing, and what routing does on the shared sets."""

from __future__ import annotations

import pytest
from evals import multihop, router
from evals.run import Settings

from .shared import shared_data


def test_without_data_only_the_labels_are_measured() -> None:
    report = router.run(None, Settings(ks=(5,)))
    assert report.habits == ()
    assert report.right + report.missed + report.needless + report.spared == len(router.labelled()) >= 200
    assert report.as_json()["precision"] == round(report.precision, 4)


def test_a_threshold_above_one_misses_all_that_need_it() -> None:
    report = router.run(None, Settings(ks=(5,)), threshold=1.1)
    assert (report.right, report.needless, report.recall) == (0, 0, 0.0)


@pytest.mark.shared
def test_routed_recall_finds_all_support_far_more_often() -> None:
    folder = shared_data("multihop")
    plain, routed = (multihop.run(folder, Settings(ks=(5,), recursion=mode)) for mode in ("off", "on"))
    assert routed.overall("passage").means["all@5"] >= plain.overall("passage").means["all@5"] + 10
    for one, other in zip(plain.by_conversation("passage"), routed.by_conversation("passage"), strict=True):
        assert other.means["all@5"] >= one.means["all@5"] + 5, one.label
    for one, other in zip(plain.by_category("passage"), routed.by_category("passage"), strict=True):
        assert other.means["all@5"] >= one.means["all@5"], one.label

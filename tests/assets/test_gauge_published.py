"""The published tables as a card."""

import pytest
import yaml

from wmeval.assets.gauge_cards import families
from wmeval.assets.gauge_published import published, read_published
from wmeval.errors import UserError


def test_the_published_cells_are_the_benchmarked_ones():
    rows = published().rows
    assert len(rows) == 110
    cells = {(r.family, r.subtask, r.material) for r in rows}
    wanted = {
        (card.id, name, material)
        for card in families().values()
        if card.benchmarked
        for name, subtask in card.subtasks.items()
        for material in subtask.frames
    }
    assert cells == wanted
    for row in rows:
        card = families()[row.family]
        assert card.frames(row.subtask, row.material) == row.frames, row
        assert row.metric in card.metrics
        assert (row.baseline == 0) == (row.metric == "el")


def test_units_follow_the_quantity():
    find = published().find
    assert find("bouncing_ball", "1", "rubber", "rmse").unit == "mm"
    assert find("textile_flinging", "1", "satin", "dtw").unit == "rad"
    assert find("foam_twisting", "1", "soft", "rmse").unit == "mm^2"
    assert find("newtons_cradle", "1", "metal", "lsd").unit == "s"
    assert find("foam_compressing", "1", "soft", "rmse") is None


def test_absolute_values_undo_the_normalisation():
    ball = published().find("bouncing_ball", "1", "rubber", "rmse")
    assert ball.absolute("genesis") == pytest.approx(119.0, abs=0.1)
    assert ball.absolute("newton") == pytest.approx(120.1, abs=0.1)
    assert published().find("pendulum", "2", "metal", "el").absolute("genesis") == -0.041
    period = published().find("pendulum", "1", "metal", "pd_fourier")
    assert period.absolute("genesis") == pytest.approx(2.816, abs=1e-3)
    assert published().find("newtons_cradle", "1", "metal", "lsd").absolute("genesis") is None
    with pytest.raises(UserError, match="isaac, genesis, newton"):
        ball.absolute("bullet")


def test_table_3_is_a_part():
    main = [r for r in published().rows if r.main_table]
    assert len(main) == 28
    assert len({r.family for r in main}) == 14


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["rows"].append(list(c["rows"][0])), "stands twice"),
        (lambda c: c["rows"][0].__setitem__(0, "slope"), "no family 'slope'"),
        (lambda c: c["rows"][0].__setitem__(5, "x"), "rows.0.5"),
        (lambda c: c["engines"].popitem(), "columns"),
        (lambda c: c.pop("source"), "source"),
    ],
)
def test_a_wrong_card_is_refused(tmp_path, change, message):
    from importlib.resources import files

    card = yaml.safe_load(
        files("wmeval.assets").joinpath("gauge", "published.yaml").read_text("utf-8")
    )
    change(card)
    path = tmp_path / "published.yaml"
    path.write_text(yaml.safe_dump(card, sort_keys=False))
    with pytest.raises(UserError, match=message):
        read_published(path)

"""Tables of a recorded run; ``AMPL_RUN`` names it, ``ampl`` is in ``PATH``."""

import os

import ampl
import pytest

RUN = os.environ["AMPL_RUN"]


def test_counts_agree_in_every_frame():
    run = ampl.open(RUN)
    functions = run.functions()
    by_name = {name: int(calls) for name, calls in functions.groupby("function")["calls"].sum().items()}
    assert by_name == run.info()["functions"]
    polars = run.functions(frame="polars")
    assert int(polars["calls"].sum()) == run.info()["calls"]
    assert len(run.calls()) == run.calls(frame="arrow").num_rows > 0


def test_estimates_have_the_command_s_rows():
    run = ampl.open(RUN)
    rows = run._json(["estimate"])
    frame = run.estimates()
    assert len(frame) == len(rows) > 0
    assert frame["mean"].dropna().sum() == pytest.approx(sum(row["mean"] or 0 for row in rows))


def test_a_cut_leaves_out_other_ranks():
    assert set(ampl.open(RUN, ranks="0").summaries()["rank"]) <= {0}


def test_absent_runs_and_unknown_frames_are_told():
    with pytest.raises(ampl.AmplError, match="name a run directory"):
        ampl.open("/nonexistent/run")
    with pytest.raises(ValueError, match="no kind of frame"):
        ampl.open(RUN).sites(frame="excel")


def test_regions_do_nothing_without_the_library():
    with ampl.region("outside"):
        assert not ampl.is_traced()
    ampl.metric("particles", 1.0)

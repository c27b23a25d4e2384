"""Runs of ampl as frames, and regions in Python programs.

    import ampl

    run = ampl.open("ampl-lmp-4242-20260101T120000")
    run.sites()                   # a pandas frame
    run.summaries(frame="polars") # the same kind of table as polars

    with ampl.region("assemble"):  # in a program under `ampl run`; does nothing elsewhere
        ...
"""

from typing import TYPE_CHECKING, Any

from ._regions import is_traced, metric, region

if TYPE_CHECKING:
    from ._run import AmplError, Run, open

__all__ = ["AmplError", "Run", "is_traced", "metric", "open", "region"]


def __getattr__(name: str) -> Any:
    # Programs that name regions need neither Arrow nor pandas.
    if name in ("AmplError", "Run", "open"):
        from . import _run

        return getattr(_run, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""A run as tables, read through the ``ampl`` command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Optional, Union

import pyarrow as pa
import pyarrow.parquet as pq

#: Name of a kind of frame: ``"pandas"``, ``"polars"`` or ``"arrow"``.
FrameKind = str
PathLike = Union[str, "os.PathLike[str]"]


class AmplError(RuntimeError):
    """A failure of the ``ampl`` command, with its message and its exit status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def _command() -> str:
    command = os.environ.get("AMPL_COMMAND") or shutil.which("ampl")
    if command is None:
        raise AmplError("the command ampl is not in PATH: add its bin directory, or set AMPL_COMMAND", 4)
    return command


def _run(words: List[str], accepted: tuple = (0,)) -> str:
    done = subprocess.run([_command(), *words], capture_output=True, text=True)
    if done.returncode not in accepted:
        raise AmplError(done.stderr.strip() or f"ampl {words[0]} failed", done.returncode)
    return done.stdout


def _frame(table: pa.Table, kind: FrameKind) -> Any:
    if kind == "pandas":
        return table.to_pandas()
    if kind == "polars":
        import polars

        return polars.from_arrow(table)
    if kind == "arrow":
        return table
    raise ValueError(f"'{kind}' is no kind of frame: use pandas, polars or arrow")


class Run:
    """A run: a run directory, its ``trace.ampl``, or a directory of journals.

    Tables are exported once, into a directory that is removed with the run. ``start``, ``until`` (``"1.5s"``) and
    ``ranks`` (``"0-3,8"``) cut them as ``ampl export`` does.
    """

    def __init__(
        self,
        path: PathLike,
        *,
        start: Optional[str] = None,
        until: Optional[str] = None,
        ranks: Optional[str] = None,
        frame: FrameKind = "pandas",
    ) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise AmplError(f"there is nothing ({self.path}): name a run directory or its trace.ampl", 4)
        self._cut: List[str] = []
        for flag, value in (("--from", start), ("--until", until), ("--ranks", ranks)):
            if value is not None:
                self._cut += [flag, value]
        self._kind = frame
        self._place: Optional[tempfile.TemporaryDirectory[str]] = None
        self._documents: Dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"ampl.open({str(self.path)!r})"

    def _table(self, name: str, kind: Optional[FrameKind]) -> Any:
        if self._place is None:
            place = tempfile.TemporaryDirectory(prefix="ampl-")
            # Damage (3) is reported on stderr; what could be read is written.
            _run(["export", str(self.path), "--to", "parquet", "-o", place.name, *self._cut], (0, 3))
            self._place = place
        table = pq.read_table(Path(self._place.name) / f"{name}.parquet")
        return _frame(table, kind or self._kind)

    def _rows(self, words: List[str], kind: Optional[FrameKind]) -> Any:
        return _frame(pa.Table.from_pylist(self._json(words)), kind or self._kind)

    def _json(self, words: List[str]) -> Any:
        key = " ".join(words)
        if key not in self._documents:
            self._documents[key] = json.loads(_run([words[0], str(self.path), *words[1:], "--json"], (0, 3)))
        return self._documents[key]

    def info(self) -> Dict[str, Any]:
        """Facts, counts and sizes: ``ampl info --json``."""
        return self._json(["info"])

    def efficiency(self) -> Any:
        """POP efficiencies of the run and of each window: ``ampl efficiency --json``."""
        return self._json(["efficiency"])

    def estimates(self, frame: Optional[FrameKind] = None) -> Any:
        """Means per window, update interval and run, with ``half_width``, ``confidence`` and ``basis``."""
        return self._table("estimates", frame)

    def summaries(self, frame: Optional[FrameKind] = None) -> Any:
        """One row per rank, window and metric."""
        return self._table("summaries", frame)

    def calls(self, frame: Optional[FrameKind] = None) -> Any:
        """One row per stored call; the time is null where it was not kept. ``weight`` expands kept calls to all."""
        return self._table("calls", frame)

    def functions(self, frame: Optional[FrameKind] = None) -> Any:
        """Exact number of calls per rank and function."""
        return self._table("functions", frame)

    def sites(self, frame: Optional[FrameKind] = None) -> Any:
        """Call sites with calls, time, bytes and late ranks: ``ampl info --calls``."""
        return self._table("sites", frame)

    def communicators(self, frame: Optional[FrameKind] = None) -> Any:
        """Communicators that the program made, and their members."""
        return self._table("communicators", frame)

    def messages(self, frame: Optional[FrameKind] = None) -> Any:
        """Messages whose send and receive are both known, by rank, thread and number of their calls."""
        return self._table("messages", frame)

    def strata(self, frame: Optional[FrameKind] = None) -> Any:
        """Ranks that behave alike."""
        return self._table("strata", frame)

    def waits(self, frame: Optional[FrameKind] = None) -> Any:
        """Ranks that wait, those that they wait for, and for how long: ``ampl query RUN waits``."""
        rows = json.loads(_run(["query", str(self.path), "waits", *self._cut, "--json"], (0, 3)))
        flat = []
        for row in rows:
            row = dict(row)
            for side in ("waiting", "causing"):
                for field, value in (row.pop(side, None) or {}).items():
                    row[f"{side}_{field}"] = value
            flat.append(row)
        return _frame(pa.Table.from_pylist(flat), frame or self._kind)


def open(
    path: PathLike,
    *,
    start: Optional[str] = None,
    until: Optional[str] = None,
    ranks: Optional[str] = None,
    frame: FrameKind = "pandas",
) -> Run:
    """The run at ``path``.

    Raises :class:`AmplError` where nothing is there; tables are read when they are asked for.
    """
    return Run(path, start=start, until=until, ranks=ranks, frame=frame)

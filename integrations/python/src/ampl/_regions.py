"""Regions and metrics of a Python program that runs under ampl; nothing happens without it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from typing import Any, Callable, Iterator, Optional, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


def _symbol(name: str, result: Any, *arguments: Any) -> Optional[Any]:
    try:
        found = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError):
        return None
    found.restype, found.argtypes = result, arguments
    return found


_register = _symbol("ampl_region_register", ctypes.c_int, ctypes.c_char_p)
_enter = _symbol("ampl_region_enter", None, ctypes.c_int)
_exit = _symbol("ampl_region_exit", None, ctypes.c_int)
_traced = _symbol("ampl_is_traced", ctypes.c_int)
_metric_register = _symbol("ampl_metric_register", ctypes.c_int, ctypes.c_char_p)
_metric_add = _symbol("ampl_metric_add", None, ctypes.c_int, ctypes.c_double)
_numbers: dict = {}
_metrics: dict = {}


class region(contextlib.ContextDecorator):
    """A region of the program: ``with ampl.region("solve"):`` or ``@ampl.region("solve")``."""

    def __init__(self, name: str) -> None:
        self.name = name
        if _register is not None and name not in _numbers:
            _numbers[name] = _register(name.encode())
        self._number = _numbers.get(name, 0)

    def __enter__(self) -> "region":
        if _enter is not None:
            _enter(self._number)
        return self

    def __exit__(self, *error: Any) -> None:
        if _exit is not None:
            _exit(self._number)


def metric(name: str, value: float) -> None:
    """Adds ``value`` to the user metric ``name`` of the current window."""
    if _metric_register is None or _metric_add is None:
        return
    if name not in _metrics:
        _metrics[name] = _metric_register(name.encode())
    _metric_add(_metrics[name], value)


def is_traced() -> bool:
    """True where ampl keeps the times of the current window; false without ampl."""
    return _traced is not None and _traced() == 1

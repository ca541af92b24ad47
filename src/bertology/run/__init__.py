"""How the work is carried out: jobs, engines, and the one verb `bertology.run`.

The verb and this package share a name, and Python puts the package in the verb's place the first
time anything in here is imported. So the package is callable too, and is the verb: `bt.run(…)`
means `bertology.run.api.run(…)` whatever was imported before.
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

from bertology.run import api

__all__ = ["api"]


class _CallablePackage(ModuleType):
    __signature__ = inspect.signature(api.run)

    def __call__(self, *given: Any, **named: Any) -> Any:
        return api.run(*given, **named)


_CallablePackage.__call__.__doc__ = api.run.__doc__
sys.modules[__name__].__class__ = _CallablePackage

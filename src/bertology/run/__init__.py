"""How studies are run: jobs, engines, and the function `bertology.run`.

The function and this package have the same name. When a module of the package is imported, Python
replaces the function `bt.run` by the package. So the package is callable as well: `bt.run(…)`
always means `bertology.run.api.run(…)`.
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType

from bertology.run import api

__all__ = ["api"]


class _CallablePackage(ModuleType):
    __signature__ = inspect.signature(api.run)

    __call__ = staticmethod(api.run)


sys.modules[__name__].__class__ = _CallablePackage

"""How studies are run: jobs, engines, and the function `bertology.run`.

The function and this package have the same name. When a module of the package is imported, Python
replaces the function `bt.run` by the package. So the package is callable as well: `bt.run(…)`
always means `bertology.run.api.run(…)`.

Engines run parts anywhere: in this process, in worker processes, on Ray. A worker writes its part
to the store itself; when it is killed, only the part it was at is done again. Parts that time
something (`timed_parts`) are done one by one, when all others are. What is stored is not measured
again, and the command that was interrupted is also the one that resumes. Where only judging changed
(`version`, `--level`, …), results are concluded from stored parts, without the model (`concluding`,
`bertology conclude`).
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

"""What came out: results, the claims judged on them, and the store that keeps them. No torch.

`conclude` of a study declares its quantities once, as an `Estimate`: value, interval, what the
interval is over (`unit`, `n`), the p-value where an exact test decides, and what would settle it. A
claim is YAML: statement, source, what was published, and a rule such as `best_head_gain above 0`. A
`Rule` with a margin turns the estimate into holds, size open, fails, negligible or inconclusive
(`rules`).
The verdict is computed when asked for, so an old result can be judged on a new claim.
Intervals behind claims hold for all heads together, since the best of 144 is always picked after
looking; `over_tasks` corrects over the tasks of a page, `over_claims` over its claims. Claims that
no paper makes are `ours` and counted apart. `verdicts` is the one place that words a verdict.

What was measured stays (`measured`): the parts of a study as NetCDF, with checksums, under a key
that is a hash of all that can change them: study, `measured_version`, measuring parameters,
fingerprints of model, corpus, other models and bundled files. A result is identified by its
measurement, by `version` and by the parameters that only conclude. Names, devices, batch sizes and
dates do not enter. A result is a folder: `result.json`, tables as Parquet, arrays as NetCDF,
figures as SVG; no pickle. The store is any fsspec URL. Files are written whole or not at all,
`result.json` last.
"""

from __future__ import annotations

from bertology.results.known_claims import find_claims, judge, load_claims
from bertology.results.over_claims import together
from bertology.results.provenance import Provenance, identity_of
from bertology.results.result import Result
from bertology.results.rules import Outcome, Rule
from bertology.results.store import Store
from bertology.results.verdicts import Claim, Verdict

__all__ = [
    "Claim",
    "Outcome",
    "Provenance",
    "Result",
    "Rule",
    "Store",
    "Verdict",
    "find_claims",
    "identity_of",
    "judge",
    "load_claims",
    "together",
]

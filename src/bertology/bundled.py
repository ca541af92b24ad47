"""Small files that come with the package and decide numbers."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

CHECKPOINTS = Path(__file__).parent / "checkpoints"


@cache
def bundled_fingerprint(name: str) -> str:
    """A hash of a file under `checkpoints/`; "absent" where it is not there."""
    file = CHECKPOINTS / name
    return sha256(file.read_bytes()).hexdigest()[:16] if file.is_file() else "absent"

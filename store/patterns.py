"""What names look like that appear in paths and digests. Light: whoever only lists runs needs no more of fields."""

from typing import Final

NODE_KEY_PATTERN: Final = r"^[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*$"
NAME_PATTERN: Final = r"^[a-z][a-z0-9]*([._-][a-z0-9]+)*$"
SHA256_PATTERN: Final = r"^[0-9a-f]{64}$"
PREFIX: Final = "run_"
NEWEST: Final = "-"
"""What may be typed in place of the id of the newest run."""
RUN_ID_PATTERN: Final = r"^run_[0-9a-hjkmnp-tv-z]{26}$"

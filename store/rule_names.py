"""Names that no rule of a user has. They stand by themselves, for who checks a configuration and judges nothing."""

from typing import Final

NO_RULE: Final = "none"
"""Stands for the rule where none matched."""
GATE_RULE: Final = "gate"
"""Stands for the rule by which a gate asks, which none of the rules can change."""
DEFAULT: Final = "default."
"""How the ids of the default rules begin."""

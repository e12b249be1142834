"""What an agent node authors for itself: its objective, its program if it has one, and its policy."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from hostler.command_nodes import WORD, command_policy
from hostler.refusals import invalid
from hostler.schemas import Schema
from store.policy import MIB, Policy

AGENT_SECONDS: Final = 3600.0
AGENT_OUTPUT_BYTES: Final = 1 * MIB
AGENT_INPUT: Final[Schema] = MappingProxyType(
    {
        "type": "object",
        "properties": {
            "argv": {"type": ["array", "null"], "items": WORD},
            "env": {"type": "object", "additionalProperties": WORD},
            "objective": {"type": "string"},
        },
        "additionalProperties": True,
    }
)
AGENT_OUTPUT: Final[Schema] = MappingProxyType(
    {
        "type": "object",
        "properties": {
            "summary": {"type": "string"},
            "evidence": {
                "type": "array",
                "items": {"type": "object", "properties": {"id": {"type": "string"}, "type": {"type": "string"}}},
            },
            "output": {},
        },
    }
)
"""The output of an agent node: what its result says, without what it spent."""


def agent_policy(authored: Mapping[str, Any], subject: str, *, external: bool) -> Policy:
    """Return the policy that an agent node authors.

    Raises:
        HostlerError: A claim or another word of it is not allowed (invalid-claims, invalid-data).

    """
    policy = command_policy(authored, subject)
    if external and policy.claims:
        raise invalid(
            f"{subject}: an agent without argv claims {', '.join(policy.claims)}, but nothing of it runs here",
            "leave the claims out; its worker may take them with hostler exec",
        )
    return policy

"""On what terms a node works: for whom, on whose authority, on what budget, and what it has to show for it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, PlainSerializer

from store.amounts import Budget
from store.fields import Contract, Id, Name, NodeKey, Text, read_only


class EvidenceType(StrEnum):
    """What can show that work was done."""

    COMMIT = "commit"
    TEST = "test"
    JOURNEY = "journey"
    SCREENSHOT = "screenshot"
    REPORT = "report"
    REVIEW = "review"
    HUMAN_APPROVAL = "human-approval"
    EXTERNAL_UPDATE = "external-update"


class Evidence(Contract):
    """One piece of evidence: what a node must bring, or has brought.

    Attributes:
        id: What it is called, in the words of whoever asks for it.
        type: What it is.

    """

    id: Id
    type: EvidenceType = Field(strict=False)


class Owner(Contract):
    """Who a node works for.

    Attributes:
        role: What they do.
        id: Who they are.

    """

    role: Name
    id: Id


class Provider(Contract):
    """Something outside that a node may use.

    Attributes:
        mode: How, in the words of the provider.
        capabilities: What of it.

    """

    mode: Name
    capabilities: tuple[Name, ...] = Field(default=(), max_length=64, strict=False)


Providers = Annotated[
    Mapping[Name, Provider],
    AfterValidator(read_only),
    PlainSerializer(lambda mapping: dict(mapping), return_type=dict[str, Provider]),  # noqa: PLW0108 - pydantic needs a signature
]
"""Name → what may be used of that provider, read-only."""


class Envelope(Contract):
    """What a node may do at most; that of a child lies within its parent's in every respect.

    Attributes:
        actions: Names of what it may do.
        paths: Files and folders that are its own, relative to the run's folder or absolute.
        commands: Ids of the commands that it may run.
        providers: Name → what it may use of that provider.

    """

    actions: tuple[Name, ...] = Field(default=(), max_length=64, strict=False)
    paths: tuple[Annotated[Text, Field(min_length=1)], ...] = Field(default=(), max_length=64, strict=False)
    commands: tuple[Id, ...] = Field(default=(), max_length=64, strict=False)
    providers: Providers = Field(default_factory=dict, validate_default=True)


class Terms(Contract):
    """On what terms a node works.

    Attributes:
        parent: The node that it was delegated by; no order follows from it.
        owner: Who it works for.
        budget: What it and all that it delegates may spend.
        authority: What it and all that it delegates may do.
        evidence: What it must bring, no less and no more.

    """

    parent: NodeKey | None = None
    owner: Owner | None = None
    budget: Budget | None = None
    authority: Envelope | None = None
    evidence: tuple[Evidence, ...] = Field(default=(), max_length=64, strict=False)

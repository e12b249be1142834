"""Rules on what people and other processes ask; who may, and is it for exactly this plan."""

from collections.abc import Sequence
from typing import Any

from actors.actions import Address
from actors.host_messages import WantRuling
from actors.messages import Judged
from actors.shell import Shell, tell
from store.approvals import judge
from store.rules import DEFAULT_RULES, Rule


class Authorization(Shell):
    """Holds the rules of this host."""

    def __init__(
        self, *, rules: Sequence[Rule] = DEFAULT_RULES, name: str = "authorization", parent: Address | None = None
    ) -> None:
        super().__init__(name=name, parent=parent)
        self._rules = tuple(rules)

    def handle(self, message: Any) -> None:
        """Judge one request."""
        match message:
            case WantRuling(judge=case, reply_to=reply_to):
                ruling = judge(case.request, case.standing, rules=self._rules)
                tell(reply_to, Judged(request=case.request, ruling=ruling))
            case _:
                super().handle(message)

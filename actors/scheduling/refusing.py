"""What an attempt wants that it may not have, or not any more."""

from actors.actions import AnswerPublication, AnswerSpending, GiveBack, PublicationRefused, SpendingRefused
from actors.messages import Admitted, PublicationWanted, SchedulingMessage, SpendingReported
from actors.scheduling.turn import Turn
from store.policy import FailureCode


def too_late(turn: Turn, message: SchedulingMessage) -> None:
    """Answer what comes when the run is no longer this host's: nothing may be written."""
    match message:
        case Admitted():
            turn.now.append(GiveBack(node=message.node, number=message.number))
        case PublicationWanted():
            refuse_publication(turn, message, FailureCode.CONFLICT, "this host no longer works on the run")
        case SpendingReported():
            turn.now.append(AnswerSpending(reply_to=message.reply_to, answer=SpendingRefused()))
        case _:
            pass


def refuse_publication(turn: Turn, message: PublicationWanted, code: FailureCode, why: str) -> None:
    """Do not let an attempt through to its outside write."""
    refusal = PublicationRefused(code=code, message=why, todo="nothing was published")
    turn.now.append(AnswerPublication(reply_to=message.reply_to, answer=refusal))

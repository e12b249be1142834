"""Reading one annotation of a function, also where annotations are postponed.

Only the annotation that is asked for is evaluated, so that others may name what exists for type checkers alone.
"""

import inspect
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Final, get_type_hints

from hostler.refusals import invalid

REQUIRED: Final = object()


def annotation_of(
    function: Callable[..., Any], where: str, names: Mapping[str, Any], subject: str, *, missing: Any = REQUIRED
) -> Any:
    """Return the type that annotates a parameter.

    Args:
        function: The annotated function.
        where: The parameter's name, or `return`.
        names: Names that its annotations may use besides those of its module.
        subject: Whom an error names.
        missing: What a missing annotation gives; by default it is refused.

    Raises:
        HostlerError: There is none, or it names something unknown (invalid-data).

    """
    shown = "the return value" if where == "return" else f"parameter {where}"
    annotations = inspect.get_annotations(function)
    if where not in annotations:
        if missing is REQUIRED:
            raise invalid(f"{subject}: {shown} has no annotation", "annotate it with a pydantic model")
        return missing
    try:
        hints = get_type_hints(
            SimpleNamespace(__annotations__={where: annotations[where]}),
            globalns=getattr(function, "__globals__", {}),
            localns=dict(names),
            include_extras=True,
        )
    except Exception as error:  # an annotation is an expression of the author's; it may raise anything
        raise invalid(
            f"{subject}: the annotation of {shown} cannot be read: {type(error).__name__}: {error}",
            "import the names it uses at the top of the file",
        ) from error
    return hints[where]

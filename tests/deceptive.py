"""Values that look like what only the author of a plan can say."""

from typing import Final

from hypothesis import strategies as st
from pydantic import JsonValue

_MARKERS: Final[st.SearchStrategy[JsonValue]] = st.sampled_from(
    [
        {"$secret": "HOME"},
        {"$ref": {"node": "other", "path": []}},
        {"$ref": {"node": "a", "path": ["x"]}},
        {"$ref": 1},
        {"$input": "x"},
    ]
)
_LEAVES: Final[st.SearchStrategy[JsonValue]] = (
    _MARKERS | st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3)
)
_NAMES: Final = st.sampled_from(["$secret", "$ref", "$input", "argv", "env", "A", "x"])
DECEPTIVE: Final[st.SearchStrategy[JsonValue]] = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3), max_leaves=6
)

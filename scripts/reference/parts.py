"""Parts of pages that are written from code, between two marks, beside text that people write."""


def with_part(text: str, name: str, content: str) -> str:
    """Return a page with one of its parts made current.

    Args:
        text: The page.
        name: What the part is called in its marks, `<!-- NAME: written by scripts/docs -->` and `<!-- /NAME -->`.
        content: What stands between them.

    Raises:
        ValueError: The page has not the two marks, once each and in this order.

    """
    begin, end = f"<!-- {name}: written by scripts/docs -->\n", f"<!-- /{name} -->"
    before, *rest = text.split(begin)
    if len(rest) == 1 and rest[0].count(end) == 1:
        return f"{before}{begin}\n{content.strip()}\n\n{end}{rest[0].partition(end)[2]}"
    raise ValueError(f"the part {name} of a page stands between {begin.strip()} and {end}, once; put the marks back")

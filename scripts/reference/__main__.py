"""Write the pages that come from code anew, or with --check say which are not current."""

import argparse
import sys

from scripts.reference import PAGES, ROOT, current, now


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(prog="scripts/docs", description=(__doc__ or "").strip())
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 if something is stale")
    check = parser.parse_args().check
    try:
        texts = {page: current(page) for page in PAGES}
    except ValueError as error:
        sys.exit(f"scripts/docs: {error}")
    stale = [page for page, text in texts.items() if now(page) != text]
    for page in stale:
        print(f"scripts/docs: {page} is {'not current; run scripts/docs --pages' if check else 'written anew'}")
        if not check:
            (ROOT / page).write_text(texts[page], encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())

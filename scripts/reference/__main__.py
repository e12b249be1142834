"""Write the pages that come from code anew, or with --check say which are not current."""

import argparse
import sys

from scripts.reference import PAGES, ROOT, current, now


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(prog="scripts/docs", description=(__doc__ or "").strip())
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 if something is stale")
    check = parser.parse_args().check
    wrong = 0
    for page in PAGES:
        try:
            text = current(page)
        except ValueError as error:
            print(f"scripts/docs: {page}: {error}", file=sys.stderr)
            wrong += 1
            continue
        if text == now(page):
            continue
        print(f"scripts/docs: {page} is {'not current; run scripts/docs --pages' if check else 'written anew'}")
        if check:
            wrong += 1
        else:
            (ROOT / page).write_text(text, encoding="utf-8")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())

"""A stand-in for a command-line agent: it reads a request, plans one step for each sentence, and answers.

    echo '{"objective": "plan", "input": {"text": "Sweep."}, "budget": null, "evidence": []}' |
      python examples/stand_in_agent.py

A real one would think. What matters here is the form: one JSON object in, one out, everything else to standard error.
"""

import json
import re
import sys


def main() -> int:
    """Answer one request; return the exit code."""
    try:
        request = json.load(sys.stdin)
        objective, text, evidence = request["objective"], str(request["input"]["text"]), request["evidence"]
        left = (request["budget"] or {}).get("tokens")
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        print(f"stand_in_agent: what stands on standard input is no request: {error!r}", file=sys.stderr)
        return 2
    print(objective, file=sys.stderr)
    sentences = [sentence.strip() for sentence in re.split(r"[.!?]\s*", text) if sentence.strip()]
    tokens = len(text.split())
    usage = {"tokens": min(tokens, left) if left is not None else tokens, "cost": "0.01"}
    if not sentences:
        answer = {"status": "blocked", "summary": "the text says nothing to do", "usage": usage}
    elif left is not None and tokens > left:
        answer = {"status": "budget-exhausted", "summary": f"it needs {tokens} tokens", "usage": usage}
    else:
        steps = [f"Do this: {sentence}" for sentence in sentences]
        answer = {
            "status": "success",
            "summary": f"{len(steps)} steps",
            "evidence": evidence,
            "usage": usage,
            "output": {"steps": steps},
        }
    json.dump(answer, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())

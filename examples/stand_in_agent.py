"""A stand-in for a command-line agent: it reads a request, plans one step for each sentence, and answers.

    echo '{"objective": "plan", "input": {"text": "Sweep."}, "budget": null, "evidence": []}' |
      python examples/stand_in_agent.py

A real one would think. What matters here is the form: one JSON object in, one out, everything else to standard error.
"""

import json
import re
import sys


def main() -> None:
    """Answer one request."""
    request = json.load(sys.stdin)
    text = request["input"]["text"]
    sys.stderr.write(f"{request['objective']}\n")
    sentences = [sentence.strip() for sentence in re.split(r"[.!?]\s*", text) if sentence.strip()]
    tokens = len(text.split())
    left = (request["budget"] or {}).get("tokens")
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
            "evidence": request["evidence"],
            "usage": usage,
            "output": {"steps": steps},
        }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()

"""The smallest workflow in Python: two operations, a compute function, and a program.

    hostler run examples/hello.py -i name=Ann -i times=3

Its inputs are the parameters of the workflow: text is taken as it is typed, a number as JSON.
"""

from pydantic import BaseModel

from hostler import Build, Context, NodeHandle, Policy, compute, operation, workflow


class Name(BaseModel):
    name: str


class Greeting(BaseModel):
    text: str


@operation("hello.greet", version=1, policy=Policy(effect="pure", resume="deterministic", max_seconds=10))
def greet(ctx: Context, input: Name) -> Greeting:
    return Greeting(text=f"Hello, {input.name}!")


@compute()
def repeat(input: dict[str, int | str]) -> list[str]:
    return [str(input["text"])] * int(input["times"])


@workflow("hello", version=1)
def hello(build: Build, name: str = "world", times: int = 2) -> dict[str, NodeHandle]:
    greeting = build.call(greet, key="greet", input={"name": name})
    lines = build.call(repeat, key="repeat", input={"text": greeting["text"], "times": times})
    letter = build.command(
        ["sh", "-c", 'printf "%s\\n" "$TEXT" > letter.txt'],
        key="letter",
        env={"TEXT": greeting["text"]},
        outputs={"letter": "letter.txt"},
        max_seconds=10,
    )
    return {"lines": lines, "letter": letter["outputs"]["letter"]["path"]}

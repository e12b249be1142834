"""Run a command on a terminal of its own and answer what it asks: `typist.py QUESTION ANSWER … -- COMMAND`.

What it writes is printed, in lines; each question gets its answer, in this order. Ends with the command's code.
"""

import os
import pty
import sys


def main() -> int:
    """Run and answer."""
    end = sys.argv.index("--")
    answers = list(zip(sys.argv[1:end:2], sys.argv[2:end:2], strict=True))
    pid, terminal = pty.fork()
    if pid == 0:
        environ = {**os.environ, "TERM": "dumb", "NO_COLOR": "1"}
        os.execvpe("bash", ["bash", "-c", sys.argv[end + 1]], environ)
    screen = unanswered = b""
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # its other side is closed
            break
        screen += data
        unanswered += data
        if answers and answers[0][0].encode() in unanswered:
            os.write(terminal, f"{answers.pop(0)[1]}\n".encode())
            unanswered = b""
    sys.stdout.write(screen.decode().replace("\r\n", "\n"))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    sys.exit(main())

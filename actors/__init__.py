"""The moving parts: one module an actor, the messages between them, and the pure scheduling core."""

import logging

# What breaks is told to whoever waits for it; a program that wants the tracebacks too listens to this logger.
logging.getLogger(__name__).addHandler(logging.NullHandler())

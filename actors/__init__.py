"""The moving parts: one module an actor, the messages between them, and the pure scheduling core."""

"""Proving a stored run: every digest, every derived fact, every row against the log."""

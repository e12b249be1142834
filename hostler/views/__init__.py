"""What people and programs see of runs: pure functions from stored values to JSON and text; the live view."""

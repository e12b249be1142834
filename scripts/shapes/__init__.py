"""Types of what commands print with `--json`, a module for each subject."""

"""The documents, as what they claim to be: commands that can be typed, programs that run, pages that are current."""

"""Taking away what is no longer wanted, beside programs that work on the same store."""

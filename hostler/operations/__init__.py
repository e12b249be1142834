"""The operations that come with the host; a kind's first word names the module that has it."""

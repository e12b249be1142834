"""The dashboard: pages to look at runs and the machine, served to one person on this machine, that change nothing.

The standard library's server does it: a few pages that are only read, for one person, need no framework, and what is
not there needs no update. Live pages ask again every now and then, so that nothing is kept open for them.
"""

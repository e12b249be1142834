"""Shell completion: what may stand where, and what the store and the machine have to offer for it.

A protocol of our own, in place of argcomplete or shtab: argcomplete runs the whole program with every parser, which
takes most of a second at each Tab, and shtab makes tables that know no runs. Here the words come from a table that is
written from the parsers (`scripts/write-tables`), so that a Tab costs a few milliseconds more than a bare Python.
"""

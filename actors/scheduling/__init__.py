"""The pure core of a scheduler: (state, message, stamp) → (state, one transaction, actions).

It has no clock, no I/O and no threads, so a test or a simulation can drive it message by message. The state is
changed in place, since copying thousands of nodes for each message would make a run's cost quadratic; whoever wants
to go back loads the run from the store, which is also what a crash does.
"""

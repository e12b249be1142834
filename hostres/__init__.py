"""Machine-wide admission and supervised processes.

Light on purpose (standard library, fasteners, psutil), so that `hostler exec` starts fast and a program
may use it alone.
"""

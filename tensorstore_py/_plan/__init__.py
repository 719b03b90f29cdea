"""The plan room: work as numbered tasks, and what any number of workers record of them.

A task is a number, picklable and idempotent; tasks never meet. A manifest on any store that writes
on condition says which are done, and by whom the others are about to be.
"""

"""The plan room: what a call does as numbered tasks, what runs them, and what is recorded of them.

A task is a number, picklable and idempotent; tasks never meet. Any engine runs them. A manifest on
any store that writes on condition says which are done, and by whom the others are about to be.
"""

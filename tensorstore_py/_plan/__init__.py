"""Work as plans: steps made of tasks that any engine can run, in any order, any number of times."""

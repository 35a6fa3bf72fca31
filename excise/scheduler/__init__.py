"""Which idle worker has the least work left? `fairness` and `assign` decide, purely; `waiting` and `idle` are
what they decide over; `simulate` shows the same code at a scale that no test machine has.
"""

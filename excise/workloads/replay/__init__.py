"""Trajectories that a real agent once took, read from its own files and run again action by action.

A replay is open-eyed: the outcome may differ from the recorded one, so agreement is reported, and it is not
called the same trajectory where the repository is another.
"""

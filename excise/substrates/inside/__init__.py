"""An agent placed into somebody else's sandbox: one kept connection in place of the platform's own exec.

A substrate that can put one file into its sandboxes and open a stream of bytes to a program there gets everything
else from here: commands timed where they run, whole trees killed, streams, terminals, shells, background
actions, files. `inside.Inside` is the mix-in, `way.connect` takes any stream of bytes, and
`surroundings.habits_of` asks the agent what the platform gives commands there.
"""

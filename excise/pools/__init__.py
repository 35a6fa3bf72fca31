"""Warm pools: sandboxes kept ready at the stages where they save most, served as a substrate.

What is decided (`stage`, `demand`, `size`, `plan`, `fitness`, `failures`, `window`) is pure; `pool` acts on it.
"""

"""How each kind of layer is made: base, repo, deps, snapshot. One file each."""

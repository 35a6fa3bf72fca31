"""What runs in the interpreter of an environment while it is made warm: standard library only, of any version."""

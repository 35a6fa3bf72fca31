"""What environments are made of: root file systems, content-addressed and shared."""

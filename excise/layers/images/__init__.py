"""Images and where they come from: folders, OCI layouts, archives, registries, engines; unpacked into layers."""

"""The live page: three files, served as they are, with nothing from anywhere else and nothing inline."""

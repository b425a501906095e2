"""The runtimes that the kit knows, one file each."""

"""Every small input there is, on the miniature build: `make miniature` builds it and runs this package."""

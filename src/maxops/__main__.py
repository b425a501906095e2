"""Run the command-line interface: `python -m maxops`."""

from maxops.cli import main

main()

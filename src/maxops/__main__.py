"""Run the command line: `python -m maxops`."""

from maxops.cli import main

main()

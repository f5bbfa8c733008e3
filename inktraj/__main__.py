"""``python -m inktraj``."""

from inktraj.cli import main

main()

"""``python -m punce`` and ``torchrun -m punce`` are the ``punce`` command."""

from punce.cli import main

main()

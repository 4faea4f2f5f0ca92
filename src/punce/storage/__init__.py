"""Files written whole or not at all: checkpoints, model folders."""

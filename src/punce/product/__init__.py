"""The jobs behind the commands, and what the page says."""

"""What the pages show: their code blocks, the commands in them, and one check for each program."""

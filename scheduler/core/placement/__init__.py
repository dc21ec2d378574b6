"""Where the tasks of one pod group go."""

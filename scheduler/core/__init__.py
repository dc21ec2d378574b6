"""The pure decision core: a snapshot goes in, decisions come out."""

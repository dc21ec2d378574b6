"""One cycle's mutable world: hooks, order, statement, reasons."""

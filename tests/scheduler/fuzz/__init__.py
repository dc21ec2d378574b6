"""A tester that plays random clusters through the core and checks rules that always hold.

generate: random clusters as scenario files; cycles: one cycle, and what the cluster does between two;
exact: sums in whole numbers; gangs, room, queues, evictions, reasons, sameness: the rules; oracle: a slow and
obviously right search on tiny clusters; shrink: makes a finding small; mended: clusters that once showed a
fault; campaign and __main__: long runs (`make fuzz`).
"""

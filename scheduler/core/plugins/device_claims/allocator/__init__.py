"""Which devices serve the claims of a task on a node, as Kubernetes' structured allocator decides it.

`pools` knows which devices a node can use, `offers` which of them a request accepts, `in_use` what of them is
left, `search` tries them in order until all claims are served, and `result` writes the outcome down.
"""

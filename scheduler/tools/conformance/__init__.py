"""Runs language-neutral scenarios and tables of rules against the core and judges what came."""

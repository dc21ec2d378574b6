"""Grouping rules that owners of a kind write as data, with jq expressions."""

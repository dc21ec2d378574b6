"""What an object may look like: schemas, rules, versions and their documents."""

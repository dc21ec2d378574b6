"""The shapes of the API for its OpenAPI document. They describe; `kaiweb.items` produces."""

"""The shapes of the API for its OpenAPI document. They only describe what `kaiweb.items` builds."""

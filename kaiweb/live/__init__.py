"""The live protocol `kaiweb.live.v1`: a websocket sends the items of a topic and what changes in them."""

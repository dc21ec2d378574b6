"""What a person sees: live frames, websocket consumers and the TypeScript app."""

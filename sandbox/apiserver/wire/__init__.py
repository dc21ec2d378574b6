"""What goes over the connection: requests, replies and protobuf bodies."""

"""The built-in kinds, captured from a real kube-apiserver, and the program that captures them."""

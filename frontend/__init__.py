"""The web page: the TypeScript program in `web`, the Django app that serves it, the build script."""

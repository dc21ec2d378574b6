"""Log-in through an identity provider (OpenID Connect): groups of the provider become role bindings.

mozilla-django-oidc runs the code flow with PKCE. Here are the discovery of the provider, stricter checks of the ID token,
and what a log-in does to users and roles.
"""

"""Rights, identities and tokens of users."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from queues.models.lengths import MAX_NAME


class Role(models.TextChoices):
    """The role of a binding; it applies to the queues of its subtree, to the whole cluster if the subtree is empty."""

    VIEWER = "viewer"
    EDITOR = "editor"
    ADMIN = "admin"


class RoleBinding(models.Model):
    """The role of a user in a subtree. Superusers are admins of everything without a binding.

    A binding with `is_provided` comes from a group of the identity provider; it is deleted when the user logs in
    without that group.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="role_bindings"
    )
    role = models.CharField(max_length=16, choices=Role.choices)
    subtree = models.CharField(max_length=MAX_NAME, blank=True, default="")
    is_provided = models.BooleanField(default=False)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "role", "subtree"], name="rolebinding_unique"),
            models.CheckConstraint(
                condition=Q(role__in=Role.values), name="rolebinding_role_valid"
            ),
            # Admins administer the whole cluster; for a subtree there are editors.
            models.CheckConstraint(
                condition=~Q(role=Role.ADMIN) | Q(subtree=""), name="rolebinding_admin_everywhere"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.subtree or 'everything'}"


class UserPreferences(models.Model):
    """How a user wants to see the dashboard: units, theme, columns. The names of `values` are those of REST."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="preferences"
    )
    values = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"preferences of {self.user}"


class ExternalIdentity(models.Model):
    """What the identity provider calls a user: the subject of its tokens, which never changes."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="external_identity"
    )
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["issuer", "subject"], name="externalidentity_subject_unique"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.subject} of {self.issuer}"


class ApiToken(models.Model):
    """A bearer token, of which only the SHA-256 and the first characters are stored.

    `networks` are those from which it may be used, all if there are none. `origin` is issuer and subject of the ID token
    that it was exchanged for, if it was.
    """

    name = models.CharField(max_length=100)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    prefix = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    subtree = models.CharField(max_length=MAX_NAME, blank=True, default="")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    networks = models.JSONField(default=list)
    origin = models.CharField(max_length=512, blank=True, default="")

    class Meta:
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.name})"


class LiveTicket(models.Model):
    """A single-use permit to open the live socket, for clients without a session cookie."""

    digest = models.CharField(max_length=64, primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, null=True, related_name="+")
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"ticket of {self.user}"

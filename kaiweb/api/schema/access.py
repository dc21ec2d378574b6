"""The caller: rights, tokens, tickets."""

from __future__ import annotations

from rest_framework import serializers as s

from queues.access.rights import SCOPES


class RoleGrant(s.Serializer[object]):
    role = s.ChoiceField(choices=["viewer", "editor", "admin"])
    subtree = s.CharField(allow_null=True)


class MeRights(s.Serializer[object]):
    editQueues = s.BooleanField()
    actOnWorkloads = s.BooleanField()
    adminQueues = s.BooleanField()
    simulate = s.BooleanField()
    manageTokens = s.BooleanField()


class Me(s.Serializer[object]):
    username = s.CharField()
    displayName = s.CharField()
    kind = s.ChoiceField(choices=["session", "token"])
    isAdmin = s.BooleanField()
    roles = RoleGrant(many=True)
    seesOnly = s.ListField(
        child=s.CharField(),
        allow_null=True,
        help_text="The subtrees that may be read; null: everything.",
    )
    rights = MeRights()
    admins = s.ListField(
        child=s.CharField(), required=False, help_text="The first admins: whom to ask for rights."
    )
    csrfToken = s.CharField(required=False)


class Preferences(s.Serializer[object]):
    density = s.ChoiceField(choices=["comfortable", "compact"], required=False)
    theme = s.ChoiceField(choices=["light", "dark", "auto"], required=False)
    memoryUnit = s.ChoiceField(choices=["GB", "GiB"], required=False)
    utc = s.BooleanField(required=False, help_text="Times in UTC.")
    shortcuts = s.BooleanField(required=False, help_text="Whether single keys are shortcuts.")
    navFolded = s.BooleanField(required=False)
    hiddenColumns = s.DictField(
        child=s.ListField(child=s.CharField()),
        required=False,
        help_text="Table -> the columns it does not show.",
    )


class Version(s.Serializer[object]):
    version = s.CharField()
    epoch = s.CharField()


class Token(s.Serializer[object]):
    id = s.IntegerField()
    owner = s.CharField()
    name = s.CharField()
    prefix = s.CharField()
    scopes = s.ListField(child=s.ChoiceField(choices=[*SCOPES]))
    subtree = s.CharField(allow_null=True)
    createdAt = s.DateTimeField()
    expiresAt = s.DateTimeField(allow_null=True)
    lastUsedAt = s.DateTimeField(allow_null=True)
    networks = s.ListField(
        child=s.CharField(), help_text="From where it may be used; everywhere if empty."
    )
    origin = s.CharField(
        allow_null=True, help_text="Issuer and subject of the ID token it was exchanged for."
    )


class TokenList(s.Serializer[object]):
    items = Token(many=True)


class TokenCreate(s.Serializer[object]):
    name = s.CharField()
    scopes = s.ListField(child=s.ChoiceField(choices=[*SCOPES]), required=False)
    subtree = s.CharField(required=False, allow_null=True)
    expiresAt = s.DateTimeField(required=False, allow_null=True)
    networks = s.ListField(
        child=s.CharField(), required=False, help_text="Such as 10.0.0.0/8; everywhere if empty."
    )


class TokenExchange(s.Serializer[object]):
    token = s.CharField(help_text="The ID token of the pipeline, a JSON Web Token.")


class TokenCreated(Token):
    token = s.CharField()


class Ticket(s.Serializer[object]):
    ticket = s.CharField()
    expiresIn = s.IntegerField()


class User(s.Serializer[object]):
    username = s.CharField()
    displayName = s.CharField()
    isActive = s.BooleanField(help_text="whether this user may log in")
    isAdmin = s.BooleanField()
    hasPassword = s.BooleanField(help_text="false for users who only log in elsewhere")
    roles = RoleGrant(many=True)
    createdAt = s.DateTimeField()
    lastLoginAt = s.DateTimeField(allow_null=True)


class UserList(s.Serializer[object]):
    items = User(many=True)


class UserEdit(s.Serializer[object]):
    displayName = s.CharField(required=False, allow_blank=True, max_length=150)
    password = s.CharField(required=False, allow_null=True)
    isActive = s.BooleanField(required=False)


class UserCreate(UserEdit):
    username = s.CharField(max_length=150)


class RoleBindingCreate(s.Serializer[object]):
    username = s.CharField()
    role = s.ChoiceField(choices=["viewer", "editor", "admin"])
    subtree = s.CharField(required=False, allow_null=True)


class RoleBinding(s.Serializer[object]):
    id = s.IntegerField()
    username = s.CharField()
    role = s.ChoiceField(choices=["viewer", "editor", "admin"])
    subtree = s.CharField(allow_null=True)
    provided = s.BooleanField(help_text="Given by a group of the identity provider.")


class RoleBindingList(s.Serializer[object]):
    items = RoleBinding(many=True)

"""HTTP without the live socket, for servers that only speak WSGI."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kaiweb.settings.local")
application = get_wsgi_application()

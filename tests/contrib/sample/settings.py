"""The settings of the project."""

import atexit
import shutil
import tempfile
from pathlib import Path

from contrib.framework import APPS

FOLDER = Path(tempfile.mkdtemp(prefix="zq-django-"))
DATABASE = FOLDER / "shop.db"
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

SECRET_KEY = "for tests"
USE_TZ = True
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "contrib.sample.urls"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    *APPS,
    "zq.contrib.django",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(DATABASE)}}
BACKEND = "zq.contrib.django.ZqBackend"
TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": ["default", "mail"]}}

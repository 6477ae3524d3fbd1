"""Which files of the repository the site has: a hook of MkDocs.

The documents link to files outside of `docs/`. The site has these too, each under its own path, so
a link is the same on GitHub and here.
"""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]

SHOWN = (
    "*.md",
    "LICENSE",
    "docs/*.*",
    "docs/images/*",
    "bench/README.md",
    "bench/results/*",
    "bench/plots/*",
    "deploy/*",
    "deploy/kubernetes/*",
    "systemd/*",
    "tests/crash/README.md",
    "tests/http/transport/http2/README.md",
    "zq/doors/queue_ti/http/rpc/queue.proto",
    "zq/http/api/description/reference.md",
    "zq/spark/pipeline/tables.py",
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files below the top of the repository, and those of the theme."""
    theme = [file for file in files if file.src_dir != config.docs_dir]
    paths = sorted({path for pattern in SHOWN for path in ROOT.glob(pattern) if path.is_file()})
    place = (str(ROOT), config.site_dir, config.use_directory_urls)
    shown = [File(path.relative_to(ROOT).as_posix(), *place) for path in paths]
    return Files([*theme, *shown])

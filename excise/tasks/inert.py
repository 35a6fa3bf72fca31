"""A build back end that builds nothing: it repeats the metadata that a source archive already carries.

Asking an installer for a source archive makes it run the package's build to learn the metadata: slow, it
needs build tools, and it runs code of the package. `fetch.py` puts copies of this file in the place of
the usual back ends, so that downloading stays downloading. It must not import anything of ours.
"""

import sys
from email.parser import Parser
from pathlib import Path

__legacy__ = sys.modules[__name__]
"""What an archive without a named back end asks of setuptools."""


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: object = None
) -> str:
    """The hook of PEP 517, answered from PKG-INFO in the archive's root."""
    del config_settings
    text = Path("PKG-INFO").read_text("utf-8")
    info = Parser().parsestr(text, headersonly=True)
    place = Path(metadata_directory, f"{info['Name']}-{info['Version']}.dist-info")
    place.mkdir(parents=True)
    (place / "METADATA").write_text(text, "utf-8")
    return place.name

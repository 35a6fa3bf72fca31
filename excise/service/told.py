"""What to export so that each client finds the service. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def exports(
    url: str, key: str | None, *, domain: str | None = None, ca: str | None = None
) -> list[str]:
    """Lines of shell. Without a key a place for one: it was told once, when it was made."""
    shown = key or "YOUR_KEY"
    lines = [
        "# native: excise.connect(), excise run --substrate service",
        f"export EXCISE_URL={url} EXCISE_API_KEY={shown}",
        "# the e2b SDK",
    ]
    if domain is None:
        lines.append(f"export E2B_API_URL={url} E2B_SANDBOX_URL={url} E2B_API_KEY={shown}")
    else:
        lines.append(f"export E2B_DOMAIN={domain} E2B_API_KEY={shown}")
    lines += ["# the daytona SDK", f"export DAYTONA_API_URL={url}/api DAYTONA_API_KEY={shown}"]
    if ca is not None:
        lines += [
            "# the certificate authority that signs for this service",
            f"export SSL_CERT_FILE={ca} REQUESTS_CA_BUNDLE={ca} NODE_EXTRA_CA_CERTS={ca}",
        ]
    return lines


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of words in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    return [
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]

"""Of this package."""

VERSION = "0.1.0"
USER_AGENT = f"libdsec-python/{VERSION}"

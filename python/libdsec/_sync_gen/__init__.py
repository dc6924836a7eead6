# Generated from python/libdsec/_async/__init__.py by `npm run generate`. Do not edit.

"""One face of the SDK. The synchronous one is generated from the asynchronous one: edit that."""

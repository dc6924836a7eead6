"""One face of the SDK. The synchronous one is generated from the asynchronous one: edit that."""

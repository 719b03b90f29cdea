"""The public face: what users hold. Every call returns a Future; no engine logic lives here."""

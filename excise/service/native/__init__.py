"""The native door: the cloud's verbs as HTTP and JSON, described by an OpenAPI document."""

"""The E2B door: what the unmodified `e2b` SDKs speak, put before the cloud. docs/e2b.md says what is there."""

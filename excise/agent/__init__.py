"""The client's side of the action API: how to talk to the agent inside a sandbox, over any connection.

The protocol is in pure modules (`wire`, `frames`, `messages`, `answers`, `mux`, and the procedures of
`procedures` and `transfer`); `connection` and `async_connection` add the socket and nothing else.
"""

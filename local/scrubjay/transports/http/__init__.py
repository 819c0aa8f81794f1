"""The daemon's HTTP interface: routes, authentication, decoding of requests, problems, and the OpenAPI document."""

"""The gRPC interface: ten operations under the wire names of the `memory` package, where the extra is installed."""

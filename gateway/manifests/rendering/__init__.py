"""What of the manifests follows from the configuration and the call graph."""

"""What a suite of Kubernetes and Istio manifests means for the suite that it runs."""

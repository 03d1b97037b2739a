"""What makes a long conversation fit a small model, without a model."""

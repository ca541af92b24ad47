"""The toy claim."""

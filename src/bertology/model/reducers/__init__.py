"""What is kept of a pass: small numbers instead of whole maps."""

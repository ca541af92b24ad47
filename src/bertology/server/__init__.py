"""Pages in the browser; only this machine can open them."""

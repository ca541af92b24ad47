"""The atlas: all that a store knows of one model, on one page that needs nothing but itself."""

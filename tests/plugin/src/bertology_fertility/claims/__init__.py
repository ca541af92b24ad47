"""The plugin's claims, as YAML."""

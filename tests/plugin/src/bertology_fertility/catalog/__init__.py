"""The plugin's datasets, one YAML file each."""

"""What people see: figures and exports of results. No torch."""

"""What plays the scenario table."""

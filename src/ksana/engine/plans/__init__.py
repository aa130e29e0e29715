"""What keeps plans going and what is shown of them up to date."""

"""What is public about the columns of a table."""

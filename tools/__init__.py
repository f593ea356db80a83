"""Scripts that make the data and the documents of the project."""

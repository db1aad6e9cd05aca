"""Scripts that compare methods and training data, make the tables, and ship weights."""

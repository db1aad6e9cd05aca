"""Stand-ins for the official data sets, as large as these, and the cost of every step on them."""

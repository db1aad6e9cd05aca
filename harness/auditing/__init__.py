"""`harness audit`: runs scenes of a record again, and says whether the record's numbers hold."""

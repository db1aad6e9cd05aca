"""Pictures of a model's vectors on the patches of any protocol, for `harness show`."""

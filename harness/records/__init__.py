"""Tables made from records: they read results, never recompute, and round only here."""

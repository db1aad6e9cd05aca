"""Photographs whose licences allow to train weights for products: `photographs.toml` lists them."""

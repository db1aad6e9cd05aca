"""Pipelines: from a user's images to features, matches and COLMAP databases of a model.

A pipeline takes a model, unlike a protocol. The command line and `import harness` find pipelines by
name, through the entry points `harness.pipelines`.
"""

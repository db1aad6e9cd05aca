"""`harness reproduce`: tables and figures of papers, trained, measured and drawn again."""

"""The command line: it parses, calls the API and prints."""

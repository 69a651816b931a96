"""Speed, always as a ratio to a reference measured in the same minute: `make bench`."""

"""The HTTP edge: verbs, what goes over the wire, who may ask, and the server around it."""

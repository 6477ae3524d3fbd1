"""HTTP/2 on the wire, frame by frame."""

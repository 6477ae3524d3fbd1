"""No hook changes what schemathesis sends."""

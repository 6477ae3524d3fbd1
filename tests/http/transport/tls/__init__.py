"""TLS on the one port: versions, certificates, and cases that ALPN does not decide."""

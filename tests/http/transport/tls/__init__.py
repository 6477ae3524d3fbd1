"""TLS on the one port: versions, certificates, what ALPN does not decide."""

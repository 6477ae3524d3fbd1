//go:build tools

// Package tools names the program that .ci/setup builds, so that go.mod keeps what it needs. The
// versions are the newest that the Go of Debian 12 can build.
package tools

import _ "github.com/summerwind/h2spec/cmd/h2spec"

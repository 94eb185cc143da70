// Package wire defines what both sides of tilth.v1 share besides its messages: addresses, limits, constants, and the
// representation of errors. Package names has the names of enums, package bounds the sizes of requests.
package wire

// Package wire defines what both sides of tilth.v1 share besides its messages: addresses, limits, names of enums,
// sizes of requests, health pages, and the representation of errors.
package wire

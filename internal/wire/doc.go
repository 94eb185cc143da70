// Package wire defines what both sides of tilth.v1 share besides its messages: addresses, the limits of calls and
// fields that their options declare, names of enums, health pages, and the representation of errors.
package wire

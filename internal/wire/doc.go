// Package wire has what both sides of tilth.v1 agree on besides its messages: addresses, limits, words, and how errors
// are told. Package names has the names of enums, package bounds the sizes of requests.
package wire

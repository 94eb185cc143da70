// Package wire holds what both sides of tilth.v1 agree on beyond its messages.
package wire

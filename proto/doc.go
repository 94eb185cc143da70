// Package proto generates the Go code of the wire protocol and of the rows of the store.
package proto

//go:generate ../scripts/generate.sh

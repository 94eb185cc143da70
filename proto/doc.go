// Package proto generates the Go code of the wire protocol into tilth/v1, and that of the store's rows into
// tilth/store/v1.
package proto

//go:generate ../scripts/generate.sh

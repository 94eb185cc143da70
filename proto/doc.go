// Package proto generates the Go code of the wire protocol into tilth/v1.
package proto

//go:generate ../scripts/generate.sh

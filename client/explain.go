package client

import "github.com/tilth-dev/tilth/internal/wire"

// ErrUnreachable is wrapped by errors of calls that found no tracker at the address.
var ErrUnreachable = wire.ErrUnreachable

// explain says what was attempted and how to remedy it, on one line.
func (c *Client) explain(attempt string, err error) error { return wire.Explain(c.addr, attempt, err) }

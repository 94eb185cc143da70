package client

import "github.com/tilth-dev/tilth/internal/wire"

// ErrUnreachable is wrapped by errors of calls that could not reach a tracker.
var ErrUnreachable = wire.ErrUnreachable

// explain adds the attempted action and the remedy to an error, on one line.
func (c *Client) explain(attempt string, err error) error { return wire.Explain(c.addr, attempt, err) }

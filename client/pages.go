package client

import "context"

// itemsPerPage keeps a message far below what a connection takes: an item has some kilobytes.
const itemsPerPage = 1000

// pages fetches one page after the other, each in a call of its own; doing says what for. fetch returns the token of
// the next page, which is empty after the last one.
func (c *Client) pages(ctx context.Context, doing string, fetch func(ctx context.Context, token string) (next string, err error)) error {
	one := func(token string) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		return fetch(ctx, token)
	}
	for token := ""; ; {
		next, err := one(token)
		if err != nil {
			return c.explain(doing, err)
		}
		if token = next; token == "" {
			return nil
		}
	}
}

package client

import "context"

// itemsPerPage keeps messages far below the size limit; an item takes some kilobytes.
const itemsPerPage = 1000

// pages fetches all pages, one call each. doing describes the action for errors. fetch returns the token of
// the next page, or "" after the last.
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

package main

import (
	"context"
	"fmt"
	"net"
	"regexp"
)

// address matches a local address in a tutorial.
var address = regexp.MustCompile(`\b(?:127\.0\.0\.1|localhost):(\d+)`)

// free returns an error if a port named in a tutorial's commands or files is in use.
func free(ctx context.Context, steps []step) error {
	var config net.ListenConfig
	tried := map[string]bool{}
	for _, s := range steps {
		for _, m := range address.FindAllStringSubmatch(s.text, -1) {
			if s.kind == "text" || tried[m[1]] {
				continue
			}
			tried[m[1]] = true
			l, err := config.Listen(ctx, "tcp", "127.0.0.1:"+m[1])
			if err != nil {
				return fmt.Errorf("%d: port %s is needed: %w: end the program that has it", s.line, m[1], err)
			}
			l.Close()
		}
	}
	return nil
}

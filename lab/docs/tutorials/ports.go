package main

import (
	"context"
	"fmt"
	"net"
	"regexp"
)

// address is one of this machine that a tutorial names.
var address = regexp.MustCompile(`\b(?:127\.0\.0\.1|localhost):(\d+)`)

// free says which of the ports that the commands and files of a tutorial name is in use.
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

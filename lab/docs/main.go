// Command docs makes and checks the documentation.
//
//	docs reference    generate the pages of the command line, gRPC and the JSON schemas
//	docs links        check every link of the site that `make docs` builds
//	docs tutorials    run the commands of tutorials, and compare their output with the text
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// commands maps the subcommands to their functions.
var commands = map[string]func(ctx context.Context, args []string) error{
	"reference": makeReference, "links": checkLinks, "tutorials": checkTutorials,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := errors.New("want a command: reference, links or tutorials")
	if len(os.Args) > 1 && commands[os.Args[1]] != nil {
		err = commands[os.Args[1]](ctx, os.Args[2:])
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "docs: %v\n", err)
		os.Exit(1)
	}
}

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	form, rest := "", args
	if len(args) > 0 {
		form, rest = args[0], args[1:]
	}
	switch form {
	case "compare":
		return runComparison(ctx, rest, os.Stdout)
	case "serve":
		return runServer(ctx, rest, os.Stdin, os.Stdout)
	case "trials":
		if len(rest) != 1 {
			return fmt.Errorf("want: bench trials LOG.jsonl")
		}
		return trialCost(rest[0], os.Stdout)
	case "table":
		return runTable(rest, os.Stdout)
	}
	if f, ok := formOf(form); ok {
		return runSuite(ctx, f, rest, os.Stdout)
	}
	return runSuite(ctx, forms[0], args, os.Stdout)
}

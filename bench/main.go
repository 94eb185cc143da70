// Command bench compares compiled models with ONNX Runtime, and writes a table of all that was compared.
//
//	bench [FLAGS] [MODEL[:INPUTS.npz] ...]    tune, compile and compare models; go on where an earlier run ended
//	bench table [FLAGS]                       print the table of what was compared so far
//	bench trials LOG.jsonl                    say what a trial of tuning cost
//
// Two more forms are for its own use: "compare" is one comparison in a process of its own, "serve" is a contender.
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
	return runSuite(ctx, args, os.Stdout)
}

package models

import (
	"context"
	"fmt"
	"os"
)

// command is the subcommand of this program that calls Main.
const command = "models"

// Main runs the benchmark of models. It runs each package in a separate process of this program.
func Main(ctx context.Context, args []string) error {
	form, rest := "", args
	if len(args) > 0 {
		form, rest = args[0], args[1:]
	}
	switch form {
	case "serve":
		return runServer(ctx, rest, os.Stdin, os.Stdout)
	case "trials":
		if len(rest) != 1 {
			return fmt.Errorf("want: lab models trials LOG.jsonl")
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

// Command bench compares packages with ONNX Runtime in one interleaved run, and says what a trial costs.
//
//	go run ./bench -model M.onnx -threads 2 -ort DIR A.tar B.tar
//	go run ./bench -log trials.jsonl
//
// Contenders take turns (A B C A B C ...), so that a machine that gets slower or faster does so for all of them.
package main

import (
	"context"
	"flag"
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
	var c comparison
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&c.model, "model", "", "ONNX file")
	flags.StringVar(&c.inputs, "inputs", "", ".npz file with the inputs (default made up)")
	flags.IntVar(&c.threads, "threads", 1, "threads of every contender")
	flags.IntVar(&c.rounds, "rounds", 15, "turns of each contender")
	flags.IntVar(&c.runs, "runs", 5, "executions in a turn")
	flags.StringVar(&c.ortDir, "ort", ".tools/ort", "folder with node_modules/onnxruntime-node")
	flags.StringVar(&c.script, "script", "bench/ort.js", "the script that serves ONNX Runtime")
	log := flags.String("log", "", "log of trials: say what a trial cost")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *log != "" {
		return trialCost(*log, os.Stdout)
	}
	c.packages = flags.Args()
	if c.model == "" || len(c.packages) == 0 {
		return fmt.Errorf("want -model FILE.onnx and packages to compare, or -log FILE")
	}
	return c.run(ctx, os.Stdout)
}

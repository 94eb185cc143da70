package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "dist: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	root := flags.String("root", ".", "folder of the repository")
	out := flags.String("out", "dist", "folder for the release; what is in it is removed")
	archs := flags.String("arch", strings.Join(architectures, ","), "architectures, with commas between")
	key := flags.String("key", "", "file of minisign's secret key that signs the release")
	password := flags.String("password-file", "", "file with the password of the key")
	if err := flags.Parse(args); err != nil {
		return err
	}
	source, err := checkedOut(ctx, *root)
	if err != nil {
		return err
	}
	r := &release{source: source, out: *out, say: func(what string) { fmt.Println("dist: " + what) }}
	if r.archs, err = parseArchitectures(*archs); err != nil {
		return err
	}
	if err := r.make(ctx); err != nil {
		return err
	}
	if *key == "" {
		r.say("SHA256SUMS is not signed: KEY=FILE signs it with minisign's secret key in FILE")
		return nil
	}
	return r.sign(ctx, *key, *password)
}
